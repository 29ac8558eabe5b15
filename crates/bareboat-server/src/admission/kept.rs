//! Metadata that policies and webhooks may not break: the resourceVersion, and valid managed fields.

use bareboat_api::{Object, Value};
use bareboat_merge::managed::validate_managed_fields;

/// The metadata as it was before policies and webhooks saw the object.
pub(super) struct KeptMetadata {
    managed: Option<Value>,
    version: Option<Value>,
}

impl KeptMetadata {
    pub(super) fn of(object: &Object) -> KeptMetadata {
        KeptMetadata {
            managed: object.meta("managedFields").cloned(),
            version: object.meta("resourceVersion").cloned(),
        }
    }

    /// Restores the resourceVersion. If the managed fields are invalid, restores them too and returns a warning.
    pub(super) fn restore(self, object: &mut Object) -> Option<String> {
        set(object, "resourceVersion", self.version);
        let error = validate_managed_fields(object.value()).err()?;
        set(object, "managedFields", self.managed);
        Some(format!(
            ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: {error}"
        ))
    }
}

fn set(object: &mut Object, key: &str, value: Option<Value>) {
    match value {
        Some(value) => object.set_meta(key, value),
        None => {
            object.remove_meta(key);
        }
    }
}

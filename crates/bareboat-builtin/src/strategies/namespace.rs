//! Namespaces: phase, finalizer and `finalize` subresource.

use super::check::path;
use crate::reach::{Reach, copy_member};
use bareboat_api::kind::{Strategy, WriteContext};
use bareboat_api::metadata::validate_finalizer_name;
use bareboat_api::{FieldError, FieldPath, Object, Value, value};

/// The finalizer that keeps a namespace until its content is deleted.
const FINALIZER: &str = "kubernetes";

/// The strategy of Namespace.
pub(crate) struct NamespaceStrategy;

impl Strategy for NamespaceStrategy {
    fn prepare_create(&self, new: &mut Object, _ctx: &WriteContext<'_>) {
        let map = new.map_mut();
        map.insert("status", value!({"phase": "Active"}));
        let spec = map.object_mut("spec");
        let mut finalizers = match spec.remove("finalizers") {
            Some(Value::Array(finalizers)) => finalizers,
            _ => Vec::new(),
        };
        if !finalizers
            .iter()
            .any(|name| name.as_str() == Some(FINALIZER))
        {
            finalizers.push(FINALIZER.into());
        }
        spec.insert("finalizers", Value::Array(finalizers));
        // The name may be generated after the defaults are set.
        let name = new.name().to_owned();
        let labels = new.metadata_mut().object_mut("labels");
        labels.insert(crate::defaults::NAMESPACE_NAME_LABEL, name.into());
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, ctx: &WriteContext<'_>) {
        match ctx.subresource {
            // Only `finalize` may change the spec, which holds only finalizers.
            None | Some("status") => copy_member(new.map_mut(), old.map(), "spec"),
            Some("finalize") => copy_member(new.map_mut(), old.map(), "status"),
            Some(_) => {}
        }
        if ctx.subresource.is_none() {
            copy_member(new.map_mut(), old.map(), "status");
        }
    }

    fn validate_create(&self, new: &Object, _ctx: &WriteContext<'_>) -> Vec<FieldError> {
        finalizers(new, |_| path(&["spec", "finalizers"]))
    }

    fn validate_update(
        &self,
        new: &Object,
        _old: &Object,
        ctx: &WriteContext<'_>,
    ) -> Vec<FieldError> {
        match ctx.subresource {
            Some("finalize") => finalizers(new, |index| path(&["spec", "finalizers"]).index(index)),
            Some("status") => phase(new),
            _ => Vec::new(),
        }
    }

    fn forbid_delete(&self, object: &Object) -> Option<String> {
        matches!(object.name(), "default" | "kube-system" | "kube-public")
            .then(|| "this namespace may not be deleted".to_owned())
    }

    fn begin_delete(&self, object: &mut Object, _ctx: &WriteContext<'_>) -> bool {
        object
            .map_mut()
            .object_mut("status")
            .insert("phase", "Terminating".into());
        self.holds_back_deletion(object)
    }

    fn keeps_generation_on_delete(&self) -> bool {
        true
    }

    fn shows_its_end(&self) -> bool {
        true
    }

    fn holds_back_deletion(&self, object: &Object) -> bool {
        !object.value().list(&["spec", "finalizers"]).is_empty()
    }
}

fn finalizers(namespace: &Object, place_of: fn(usize) -> FieldPath) -> Vec<FieldError> {
    let mut wrong = Vec::new();
    let given = namespace.value().list(&["spec", "finalizers"]);
    for (index, name) in given.iter().filter_map(Value::as_str).enumerate() {
        let place = place_of(index);
        wrong.extend(validate_finalizer_name(name, &place));
        if !name.contains('/') && name != FINALIZER {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            wrong.push(FieldError::invalid(place, name, detail));
        }
    }
    wrong
}

fn phase(namespace: &Object) -> Vec<FieldError> {
    let phase = namespace.value().text(&["status", "phase"]);
    let (wanted, detail) = match namespace.deletion_timestamp() {
        None => (
            "Active",
            "may only be 'Active' if `deletionTimestamp` is empty",
        ),
        Some(_) => (
            "Terminating",
            "may only be 'Terminating' if `deletionTimestamp` is not empty",
        ),
    };
    if phase == wanted {
        return Vec::new();
    }
    vec![FieldError::invalid(
        path(&["status", "Phase"]),
        phase,
        detail,
    )]
}

//! Migration from client-side apply: the annotation with `kubectl`'s last configuration.
//!
//! Only the manager named exactly `kubectl` is treated so.

use crate::{
    fields::FieldSet,
    typed::{self, changes, to_set},
};
use bareboat_api::{Map, Value, typing::TypeNode};

pub(super) const KUBECTL: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The maximum bytes of all annotations of an object.
const MAX_ANNOTATIONS: usize = 256 * 1024;

/// Returns the fields that still equal the annotation, on which conflicts are allowed.
// Upstream: apimachinery managedfields/internal/lastappliedmanager.go.
pub(super) fn allowed(live: &Value, api_version: &str, node: &dyn TypeNode) -> Option<FieldSet> {
    let text = annotation(live)?;
    let last: Value = serde_json::from_str(text).ok()?;
    if last.get("apiVersion").and_then(Value::as_str) != Some(api_version) {
        return None;
    }
    typed::validate(&last, node).ok()?;
    let mut fields = to_set(&last, node);
    let different = changes(&last, live, node);
    fields.subtract(&different.changed);
    fields.subtract(&different.removed);
    Some(fields)
}

/// Updates the annotation, if there is one, with the applied configuration.
// Upstream: apimachinery managedfields/internal/lastappliedupdater.go.
pub(super) fn refresh(object: &mut Value, config: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut config = config.clone();
    if let Some(Value::Object(metadata)) = config.at_mut(&["metadata"]) {
        match metadata.get_mut("annotations") {
            Some(Value::Object(annotations)) => {
                annotations.remove(ANNOTATION);
                for (_, value) in annotations.iter_mut() {
                    if value.is_null() {
                        *value = Value::string("");
                    }
                }
            }
            Some(Value::Null) => drop(metadata.remove("annotations")),
            _ => {}
        }
    }
    let Some(annotations) = annotations_mut(object) else {
        return;
    };
    annotations.insert(ANNOTATION, Value::from(format!("{config}\n")));
    let size = annotations
        .iter()
        .map(|(key, value)| key.len() + value.as_str().map_or(0, str::len));
    if size.sum::<usize>() > MAX_ANNOTATIONS {
        annotations.remove(ANNOTATION);
    }
}

fn annotation(object: &Value) -> Option<&str> {
    let text = object
        .at(&["metadata", "annotations", ANNOTATION])?
        .as_str()?;
    Some(text).filter(|text| !text.is_empty())
}

fn annotations_mut(object: &mut Value) -> Option<&mut Map> {
    object.at_mut(&["metadata", "annotations"])?.as_object_mut()
}

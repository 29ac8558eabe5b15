//! Validation of embedded resources: type meta, and metadata that a server would accept.

use crate::schema::{Flags, Node};
use bareboat_api::kind::NameRule;
use bareboat_api::metadata::validate_metadata;
use bareboat_api::{FieldError, FieldErrors, FieldPath, Map, Value, names};

/// Checks every embedded resource below a node.
pub(crate) fn embedded_resources(
    node: &Node,
    value: &Value,
    path: &FieldPath,
    errors: &mut FieldErrors,
) {
    if !node.has(Flags::EMBEDDED_BELOW) {
        return;
    }
    match value {
        Value::Object(map) => {
            if node.has(Flags::EMBEDDED) {
                resource(map, path, errors);
            }
            let mut declared = node.in_order();
            for (name, member) in map.iter() {
                if let Some(property) = declared.property(name) {
                    embedded_resources(property, member, &path.child(name), errors);
                } else if let Some(schema) = node.additional() {
                    embedded_resources(schema, member, &path.key(name), errors);
                }
            }
        }
        Value::Array(list) => {
            if let Some(items) = &node.items {
                for (index, item) in list.iter().enumerate() {
                    embedded_resources(items, item, &path.index(index), errors);
                }
            }
        }
        _ => {}
    }
}

/// Checks one resource.
pub(crate) fn resource(map: &Map, path: &FieldPath, errors: &mut FieldErrors) {
    for key in ["apiVersion", "kind"] {
        let path = path.child(key);
        let text = match map.get(key) {
            None => {
                errors.push(FieldError::required(path, ""));
                continue;
            }
            Some(Value::String(text)) => text,
            Some(other) => {
                errors.push(FieldError::invalid(path, other.clone(), "must be a string"));
                continue;
            }
        };
        if text.is_empty() {
            errors.push(FieldError::invalid(path, "", "must not be empty"));
        } else if key == "apiVersion" {
            if text.matches('/').count() > 1 {
                let detail = format!("unexpected GroupVersion string: {text}");
                errors.push(FieldError::invalid(path, text.clone(), detail));
            }
        } else {
            let problems = names::dns1035_label(&text.to_lowercase());
            if !problems.is_empty() {
                let detail = format!(
                    "may have mixed case, but should otherwise match: {}",
                    problems.join(",")
                );
                errors.push(FieldError::invalid(path, text.clone(), detail));
            }
        }
    }
    match map.get("metadata") {
        Some(Value::Object(meta)) => metadata(meta, &path.child("metadata"), errors),
        Some(Value::Null) | None => {}
        Some(other) => errors.push(FieldError::invalid(
            path.child("metadata"),
            other.clone(),
            "must be an object",
        )),
    }
}

fn metadata(meta: &Map, path: &FieldPath, errors: &mut FieldErrors) {
    let namespaced = meta
        .get_str("namespace")
        .is_some_and(|name| !name.is_empty());
    let found = if meta.get_str("name").is_some_and(|name| !name.is_empty()) {
        validate_metadata(meta, namespaced, NameRule::PathSegment, path)
    } else {
        // Templates need no name; a valid one is filled in so that the check does not require it.
        let mut named = meta.clone();
        named.insert("name", Value::string("unnamed"));
        validate_metadata(&named, namespaced, NameRule::PathSegment, path)
    };
    errors.extend(found);
}

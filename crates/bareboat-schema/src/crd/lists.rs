//! Validation of lists that are sets or maps: their elements and keys.

use super::props::Props;
use bareboat_api::{FieldError, FieldErrors, FieldPath, Value};
use std::collections::HashSet;

/// The maximum number of errors about the keys of one list.
const MAX_SHOWN: usize = 16;

/// Checks the keys of a map list.
pub(super) fn list_map(s: Props<'_>, path: &FieldPath, errors: &mut FieldErrors) {
    let list_type = s.0.get_str("x-kubernetes-list-type");
    let keys = s.list("x-kubernetes-list-map-keys");
    if !keys.is_empty() && list_type != Some("map") {
        let at = path.child("x-kubernetes-list-type");
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(match list_type {
            None => FieldError::required(at, detail),
            Some(other) => FieldError::invalid(at, other, detail),
        });
    }
    if list_type != Some("map") {
        return;
    }
    let keys_at = path.child("x-kubernetes-list-map-keys");
    let items_at = path.child("items");
    if keys.is_empty() {
        errors.push(FieldError::required(
            keys_at.clone(),
            "must not be empty if x-kubernetes-list-type is map",
        ));
    }
    let Some(items) = s.child("items") else {
        errors.push(if s.list("items").is_empty() {
            FieldError::required(
                items_at,
                "must have a schema if x-kubernetes-list-type is map",
            )
        } else {
            FieldError::invalid_whole(
                items_at,
                "must only have a single schema if x-kubernetes-list-type is map",
            )
        });
        return;
    };
    if items.kind() != "object" {
        errors.push(FieldError::invalid(
            items_at.child("type"),
            items.kind(),
            "must be object if parent array's x-kubernetes-list-type is map",
        ));
        return;
    }
    let mut seen = HashSet::new();
    // Each of these errors shows all keys.
    let mut shown = 0;
    let mut complain = |errors: &mut FieldErrors, detail: &str| {
        shown += 1;
        if shown <= MAX_SHOWN {
            errors.push(FieldError::invalid(keys_at.clone(), keys.to_vec(), detail));
        }
    };
    for key in s.texts("x-kubernetes-list-map-keys") {
        match items.property(key) {
            Some(property) if matches!(property.kind(), "array" | "object") => {
                errors.push(FieldError::invalid(
                    items_at.child("properties").key(key).child("type"),
                    items.kind(),
                    "must be a scalar type if parent array's x-kubernetes-list-type is map",
                ));
            }
            Some(_) => {}
            None => complain(errors, "entries must all be names of item properties"),
        }
        if !seen.insert(key) {
            complain(errors, "must not contain duplicate entries");
        }
    }
}

/// Checks that the elements of a set are atomic.
pub(super) fn non_atomic_set(s: Props<'_>, path: &FieldPath) -> Option<FieldError> {
    if s.text("x-kubernetes-list-type") != "set" {
        return None;
    }
    let items = s.child("items")?;
    let key = match items.kind() {
        "array" if !matches!(items.text("x-kubernetes-list-type"), "" | "atomic") => {
            "x-kubernetes-list-type"
        }
        "object" if items.text("x-kubernetes-map-type") != "atomic" => "x-kubernetes-map-type",
        _ => return None,
    };
    Some(FieldError::invalid(
        path.child("items").child(key),
        items.0.get_str(key).map_or(Value::Null, Value::string),
        "must be atomic as item of a list with x-kubernetes-list-type=set",
    ))
}

/// Checks that elements of sets and maps are never null, and that the keys of maps are required or
/// defaulted.
pub(super) fn map_and_set_items(s: Props<'_>, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = FieldErrors::default();
    let list_type = s.text("x-kubernetes-list-type");
    let Some(items) = s
        .child("items")
        .filter(|_| matches!(list_type, "set" | "map"))
    else {
        return errors.into_list();
    };
    let at = path.child("items");
    if items.truth("nullable") {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(FieldError::forbidden(at.child("nullable"), detail));
    }
    if list_type != "map" {
        return errors.into_list();
    }
    let required: HashSet<&str> = items.texts("required").collect();
    for key in s.texts("x-kubernetes-list-map-keys") {
        let Some(property) = items.property(key) else {
            continue;
        };
        let at = at.child("properties").key(key);
        if !required.contains(key) && property.default().is_none() {
            errors.push(FieldError::required(
                at.child("default"),
                "this property is in x-kubernetes-list-map-keys, \
                 so it must have a default or be a required property",
            ));
        }
        if property.truth("nullable") {
            errors.push(FieldError::forbidden(
                at.child("nullable"),
                "this property is in x-kubernetes-list-map-keys, so it cannot be nullable",
            ));
        }
    }
    errors.into_list()
}

//! Validation of `metadata`, for creations and for updates.
//!
//! The server fills in generated names, uids, timestamps and resourceVersions before these checks
//! run. The kind's policy decides whether an update must name a resourceVersion.

mod managed;
mod owners;

pub use managed::validate_field_manager;

use crate::field::go_quote;
use crate::kind::NameRule;
use crate::{FieldError, FieldErrors, FieldPath, Map, Value, names};
use std::collections::HashSet;

/// The maximum size of all annotation keys and values together, in bytes.
pub const ANNOTATIONS_MAX: usize = 256 * 1024;
/// The finalizer that keeps an owner until no dependent refers to it.
pub const ORPHAN_FINALIZER: &str = "orphan";
/// The finalizer that keeps an owner until its dependents are deleted.
pub const FOREGROUND_FINALIZER: &str = "foregroundDeletion";

const IMMUTABLE: &str = "field is immutable";

/// Returns the errors in the metadata of an object that is to be created.
pub fn validate_metadata(
    meta: &Map,
    namespaced: bool,
    name_rule: NameRule,
    path: &FieldPath,
) -> Vec<FieldError> {
    let mut wrong = FieldErrors::default();
    let text = |key| meta.get_str(key).unwrap_or("");
    let generate_name = text("generateName");
    if !generate_name.is_empty() {
        let path = path.child("generateName");
        for message in name_rule.check_prefix(generate_name) {
            wrong.push(FieldError::invalid(path.clone(), generate_name, message));
        }
    }
    let name = text("name");
    if name.is_empty() {
        let detail = "name or generateName is required";
        wrong.push(FieldError::required(path.child("name"), detail));
    } else {
        for message in name_rule.check(name) {
            wrong.push(FieldError::invalid(path.child("name"), name, message));
        }
    }
    let namespace = text("namespace");
    match (namespaced, namespace.is_empty()) {
        (true, true) => wrong.push(FieldError::required(path.child("namespace"), "")),
        (true, false) => {
            for message in names::dns1123_label(namespace) {
                let path = path.child("namespace");
                wrong.push(FieldError::invalid(path, namespace, message));
            }
        }
        (false, false) => wrong.push(FieldError::forbidden(
            path.child("namespace"),
            "not allowed on this type",
        )),
        (false, true) => {}
    }
    if generation(meta) < 0 {
        wrong.push(FieldError::invalid(
            path.child("generation"),
            generation(meta),
            "must be greater than or equal to 0",
        ));
    }
    always(meta, path, &mut wrong);
    finalizers(meta, path, &mut wrong);
    wrong.into_list()
}

/// Returns the errors in new metadata, compared with the stored metadata.
pub fn validate_metadata_update(new: &Map, old: &Map, path: &FieldPath) -> Vec<FieldError> {
    let mut wrong = FieldErrors::default();
    finalizers(new, path, &mut wrong);
    if old
        .get("deletionTimestamp")
        .is_some_and(|time| !time.is_null())
    {
        no_new_finalizers(new, old, &path.child("finalizers"), &mut wrong);
    }
    if generation(new) < generation(old) {
        wrong.push(FieldError::invalid(
            path.child("generation"),
            generation(new),
            "must not be decremented",
        ));
    }
    for key in [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        let (before, after) = (set(old, key), set(new, key));
        if before != after {
            let shown = after.cloned().unwrap_or_else(|| unset(key));
            wrong.push(FieldError::invalid(path.child(key), shown, IMMUTABLE));
        }
    }
    always(new, path, &mut wrong);
    wrong.into_list()
}

/// Checks the rules that new and changed objects share.
fn always(meta: &Map, path: &FieldPath, wrong: &mut FieldErrors) {
    // Every write comes here: paths are made only for members that are present.
    let checks: [(&str, Check); 4] = [
        ("labels", validate_labels),
        ("annotations", validate_annotations),
        ("ownerReferences", owners::validate),
        ("managedFields", managed::validate),
    ];
    for (member, check) in checks {
        if let Some(value) = meta.get(member) {
            check(Some(value), &path.child(member), wrong);
        }
    }
}

/// Appends the errors in a member.
type Check = fn(Option<&Value>, &FieldPath, &mut FieldErrors);

/// Returns the errors in labels and annotations that a conversion changed. Those that it did not
/// change are not checked.
pub fn validate_converted(before: Option<&Map>, after: &Map) -> Vec<FieldError> {
    let mut wrong = FieldErrors::default();
    let path = FieldPath::new("metadata");
    let was = |member: &str| before.and_then(|before| before.get(member));
    let (labels, annotations) = (after.get("labels"), after.get("annotations"));
    if labels != was("labels") {
        validate_labels(labels, &path.child("labels"), &mut wrong);
    }
    if annotations != was("annotations") {
        validate_annotations(annotations, &path.child("annotations"), &mut wrong);
    }
    wrong.into_list()
}

/// Appends the errors in a map of labels.
pub fn validate_labels(labels: Option<&Value>, path: &FieldPath, wrong: &mut FieldErrors) {
    for (key, value) in members(labels, path, wrong) {
        for message in names::qualified_name(key) {
            wrong.push(FieldError::invalid(path.clone(), key, message));
        }
        for message in names::label_value(value) {
            wrong.push(FieldError::invalid(path.clone(), value, message));
        }
    }
}

/// Appends the errors in a map of annotations.
pub fn validate_annotations(
    annotations: Option<&Value>,
    path: &FieldPath,
    wrong: &mut FieldErrors,
) {
    let mut size = 0;
    for (key, value) in members(annotations, path, wrong) {
        // Annotation keys are older than the rule that prefixes are in lower case.
        for message in names::qualified_name(&key.to_lowercase()) {
            wrong.push(FieldError::invalid(path.clone(), key, message));
        }
        size += key.len() + value.len();
    }
    if size > ANNOTATIONS_MAX {
        wrong.push(FieldError::too_long(path.clone(), ANNOTATIONS_MAX));
    }
}

/// Returns the errors of the name of a finalizer.
pub fn validate_finalizer_name(name: &str, path: &FieldPath) -> Vec<FieldError> {
    names::qualified_name(name)
        .into_iter()
        .map(|message| FieldError::invalid(path.clone(), name, message))
        .collect()
}

/// Appends the errors in the finalizers of metadata at a path.
fn finalizers(meta: &Map, path: &FieldPath, wrong: &mut FieldErrors) {
    let finalizers = finalizer_names(meta);
    if finalizers.is_empty() {
        return;
    }
    let path = &path.child("finalizers");
    for name in &finalizers {
        wrong.extend(validate_finalizer_name(name, path));
    }
    if finalizers.contains(&ORPHAN_FINALIZER) && finalizers.contains(&FOREGROUND_FINALIZER) {
        let shown = meta.get("finalizers").cloned().unwrap_or_default();
        let detail =
            format!("finalizer {ORPHAN_FINALIZER} and {FOREGROUND_FINALIZER} cannot be both set");
        wrong.push(FieldError::invalid(path.clone(), shown, detail));
    }
}

fn no_new_finalizers(new: &Map, old: &Map, path: &FieldPath, wrong: &mut FieldErrors) {
    let before: HashSet<&str> = finalizer_names(old).into_iter().collect();
    let mut added = finalizer_names(new);
    added.retain(|name| !before.contains(name));
    crate::sort_by(&mut added, Ord::cmp);
    added.dedup();
    if added.is_empty() {
        return;
    }
    let added: Vec<String> = added.into_iter().map(go_quote).collect();
    let detail = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        added.join(", ")
    );
    wrong.push(FieldError::forbidden(path.clone(), detail));
}

fn finalizer_names(meta: &Map) -> Vec<&str> {
    let list = meta.get("finalizers").and_then(Value::as_array);
    list.unwrap_or_default()
        .iter()
        .filter_map(Value::as_str)
        .collect()
}

fn generation(meta: &Map) -> i64 {
    meta.get("generation").and_then(Value::as_i64).unwrap_or(0)
}

/// Returns a member that is set.
fn set<'m>(meta: &'m Map, key: &str) -> Option<&'m Value> {
    meta.get(key).filter(|value| !is_unset(value))
}

/// Returns whether a value is an empty text or null: Go's zero value, which means "not set".
fn is_unset(value: &Value) -> bool {
    matches!(value, Value::Null) || value.as_str() == Some("")
}

fn unset(key: &str) -> Value {
    match key {
        "name" | "namespace" | "uid" => Value::from(""),
        _ => Value::Null,
    }
}

/// Returns the members of a map of strings; members of another type are reported as errors.
fn members<'m>(
    map: Option<&'m Value>,
    path: &FieldPath,
    wrong: &mut FieldErrors,
) -> Vec<(&'m str, &'m str)> {
    let map = match map {
        None | Some(Value::Null) => return Vec::new(),
        Some(Value::Object(map)) => map,
        Some(other) => {
            let detail = "must be an object whose values are strings";
            wrong.push(FieldError::type_invalid(
                path.clone(),
                other.clone(),
                detail,
            ));
            return Vec::new();
        }
    };
    let mut texts = Vec::with_capacity(map.len());
    for (key, value) in map.iter() {
        match value {
            Value::String(text) => texts.push((key, text.as_str())),
            Value::Null => texts.push((key, "")),
            other => {
                let detail = "must be a string";
                wrong.push(FieldError::type_invalid(
                    path.key(key),
                    other.clone(),
                    detail,
                ));
            }
        }
    }
    texts
}

#[cfg(test)]
mod tests;

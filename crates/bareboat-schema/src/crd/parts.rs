//! Validation of names, columns, subresources, deprecation and stored versions of a definition.

use super::validate::versions;
use bareboat_api::{FieldError, FieldErrors, FieldPath, Value, names};
use std::collections::HashSet;

const COLUMN_TYPES: &str = "boolean,date,integer,number,string";
const COLUMN_FORMATS: &str = "byte,date,date-time,double,float,int32,int64,password";

/// Validates `deprecationWarning`: only in deprecated versions, printable, not empty, at most 256
/// characters.
pub(super) fn check_deprecation(version: &Value, at: &FieldPath, errors: &mut FieldErrors) {
    let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) else {
        return;
    };
    let at = at.child("deprecationWarning");
    let mut complain = |detail: String| {
        errors.push(FieldError::invalid(at.clone(), warning, detail));
    };
    if version.get("deprecated").and_then(Value::as_bool) != Some(true) {
        complain("can only be set for deprecated versions".to_owned());
        return;
    }
    if warning.len() > 256 {
        complain("must be <= 256 characters long".to_owned());
    }
    if warning.is_empty() {
        complain("must not be an empty string".to_owned());
    }
    let odd = warning
        .char_indices()
        .find(|(_, character)| !names::is_printable(*character));
    if let Some((index, _)) = odd {
        complain(format!(
            "must only contain printable UTF-8 characters; \
             non-printable character found at index {index}"
        ));
    }
}

/// Checks the syntax of names, in the spec or the status.
pub(super) fn check_names(value: Option<&Value>, path: &FieldPath, errors: &mut FieldErrors) {
    let Some(value) = value else { return };
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or("");
    for key in ["plural", "singular"] {
        let problems = names::dns1035_label(text(key));
        if !text(key).is_empty() && !problems.is_empty() {
            errors.push(FieldError::invalid(
                path.child(key),
                text(key),
                problems.join(","),
            ));
        }
    }
    for key in ["kind", "listKind"] {
        let problems = names::dns1035_label(&text(key).to_lowercase());
        if !text(key).is_empty() && !problems.is_empty() {
            let detail = format!(
                "may have mixed case, but should otherwise match: {}",
                problems.join(",")
            );
            errors.push(FieldError::invalid(path.child(key), text(key), detail));
        }
    }
    for key in ["shortNames", "categories"] {
        let list = value.get(key).and_then(Value::as_array).unwrap_or(&[]);
        for (index, name) in list.iter().filter_map(Value::as_str).enumerate() {
            let problems = names::dns1035_label(name);
            if !problems.is_empty() {
                let at = path.child(key).index(index);
                errors.push(FieldError::invalid(at, name, problems.join(",")));
            }
        }
    }
    if !text("kind").is_empty() && text("kind") == text("listKind") {
        errors.push(FieldError::invalid(
            path.child("listKind"),
            text("listKind"),
            "kind and listKind may not be the same",
        ));
    }
}

/// Checks a table column.
pub(super) fn check_column(column: &Value, at: &FieldPath, errors: &mut FieldErrors) {
    let text = |key: &str| column.get(key).and_then(Value::as_str).unwrap_or("");
    if text("name").is_empty() {
        errors.push(FieldError::required(at.child("name"), ""));
    }
    let detail = format!("must be one of {COLUMN_TYPES}");
    match text("type") {
        "" => errors.push(FieldError::required(at.child("type"), detail)),
        "integer" | "number" | "string" | "boolean" | "date" => {}
        other => errors.push(FieldError::invalid(at.child("type"), other, detail)),
    }
    let format = text("format");
    if !format.is_empty() && !COLUMN_FORMATS.split(',').any(|known| known == format) {
        let detail = format!("must be one of {COLUMN_FORMATS}");
        errors.push(FieldError::invalid(at.child("format"), format, detail));
    }
    let path = text("jsonPath");
    if path.is_empty() {
        errors.push(FieldError::required(at.child("JSONPath"), ""));
    } else {
        check_simple_path(path, &at.child("JSONPath"), errors);
    }
}

fn check_simple_path(path: &str, at: &FieldPath, errors: &mut FieldErrors) -> bool {
    if path.starts_with('.') {
        return true;
    }
    errors.push(FieldError::invalid(
        at.clone(),
        path,
        "must be a simple json path starting with .",
    ));
    false
}

/// Checks the paths of the scale subresource.
pub(super) fn check_subresources(value: Option<&Value>, at: &FieldPath, errors: &mut FieldErrors) {
    let Some(scale) = value.and_then(|value| value.get("scale")) else {
        return;
    };
    let rules: [(&str, bool, &[&str], &str); 3] = [
        (
            "specReplicasPath",
            true,
            &[".spec."],
            "should be a json path under .spec",
        ),
        (
            "statusReplicasPath",
            true,
            &[".status."],
            "should be a json path under .status",
        ),
        (
            "labelSelectorPath",
            false,
            &[".spec.", ".status."],
            "should be a json path under either .spec or .status",
        ),
    ];
    for (key, required, prefixes, detail) in rules {
        let at = at.child("scale").child(key);
        let path = scale.get(key).and_then(Value::as_str).unwrap_or("");
        if path.is_empty() {
            if required {
                errors.push(FieldError::required(at, ""));
            }
        } else if check_simple_path(path, &at, errors)
            && !prefixes.iter().any(|prefix| path.starts_with(prefix))
        {
            errors.push(FieldError::invalid(at, path, detail));
        }
    }
}

/// Checks that the storage version is among the stored versions, and that all of them exist.
pub(super) fn check_stored_versions(crd: &Value, errors: &mut FieldErrors) {
    let at = FieldPath::new("status").child("storedVersions");
    let stored = crd
        .at(&["status", "storedVersions"])
        .and_then(Value::as_array)
        .unwrap_or(&[]);
    if stored.is_empty() {
        errors.push(FieldError::invalid(
            at,
            Value::Null,
            "must have at least one stored version",
        ));
        return;
    }
    fn named(version: &Value) -> Option<&str> {
        version.get("name").and_then(Value::as_str)
    }
    let known: HashSet<Option<&str>> = stored.iter().map(Value::as_str).collect();
    for version in versions(crd) {
        // Each error shows all stored versions.
        if errors.is_full() {
            return;
        }
        let name = named(version);
        let is_storage = version.get("storage").and_then(Value::as_bool) == Some(true);
        if is_storage && !known.contains(&name) {
            let name = name.unwrap_or("");
            errors.push(FieldError::invalid(
                at.clone(),
                stored.to_vec(),
                format!("must have the storage version {name}"),
            ));
        }
    }
    let known: HashSet<Option<&str>> = versions(crd).iter().map(named).collect();
    for (index, name) in stored.iter().enumerate() {
        if known.contains(&name.as_str()) {
            continue;
        }
        let text = name.as_str().unwrap_or("");
        let detail = format!(
            "missing from spec.versions; {text} was previously a storage version, and must \
             remain in spec.versions until a storage migration ensures no data remains \
             persisted in {text} and removes {text} from status.storedVersions"
        );
        errors.push(FieldError::invalid(at.index(index), text, detail));
    }
}

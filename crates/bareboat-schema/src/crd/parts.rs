//! Validation of names, columns, subresources and deprecation of a definition.

use bareboat_api::{FieldError, FieldErrors, FieldPath, Value, names};

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

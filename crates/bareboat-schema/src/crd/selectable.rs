//! Validation of the fields that selectors may name.

use crate::Schema;
use crate::path::field_path;
use crate::schema::Kind;
use bareboat_api::{FieldError, FieldErrors, FieldPath, Value};
use std::collections::HashSet;

const MAX_SELECTABLE: usize = 8;

/// Checks `selectableFields`; too many are tolerated if the old version had them already.
pub(super) fn check_selectable(
    version: &Value,
    old: Option<&Value>,
    at: &FieldPath,
    errors: &mut FieldErrors,
) {
    let fields = version.get("selectableFields");
    let list = fields.and_then(Value::as_array).unwrap_or(&[]);
    if list.is_empty() {
        return;
    }
    let schema = version
        .at(&["schema", "openAPIV3Schema"])
        .and_then(|schema| Schema::parse(schema).ok());
    let Some(schema) = schema else {
        errors.push(FieldError::invalid(
            at.clone(),
            "",
            "may only be set when validations.schema is included",
        ));
        return;
    };
    let mut seen: HashSet<String> = HashSet::new();
    for (index, field) in list.iter().enumerate() {
        let at = at.index(index).child("jsonPath");
        let text = field.get("jsonPath").and_then(Value::as_str).unwrap_or("");
        if text.is_empty() {
            errors.push(FieldError::required(at, ""));
            continue;
        }
        let target = match field_path(text, &schema.root, false) {
            Ok(target) => target,
            Err(problem) => {
                let detail = format!("is an invalid path: {problem}");
                errors.push(FieldError::invalid(at, text, detail));
                continue;
            }
        };
        if target.first == "metadata" {
            let detail = "must not point to fields in metadata";
            errors.push(FieldError::invalid(at.clone(), text, detail));
        }
        if !matches!(
            target.node.kind,
            Kind::String | Kind::Boolean | Kind::Integer
        ) {
            errors.push(FieldError::invalid(
                at.clone(),
                text,
                "must point to a field of type string, boolean or integer. \
                 Enum string fields and strings with formats are allowed.",
            ));
        }
        if !seen.insert(target.path.as_str().to_owned()) {
            errors.push(FieldError::duplicate(at, text));
        }
    }
    let tolerated = old.is_some_and(|old| old.get("selectableFields") == fields);
    if seen.len() > MAX_SELECTABLE && !tolerated {
        errors.push(FieldError::too_many(at.clone(), seen.len(), MAX_SELECTABLE));
    }
}

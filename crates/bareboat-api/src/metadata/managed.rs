//! Validation of `managedFields` entries: their form, not the fields they own.

use crate::{FieldError, FieldErrors, FieldPath, Value, names};

const MANAGER_MAX: usize = 128;
const SUBRESOURCE_MAX: usize = 256;

/// Appends the errors in a list of entries.
pub(super) fn validate(entries: Option<&Value>, path: &FieldPath, wrong: &mut FieldErrors) {
    let entries = entries.and_then(Value::as_array).unwrap_or_default();
    for (index, entry) in entries.iter().enumerate() {
        // Every write comes here: a path is made only for an error.
        let path = || path.index(index);
        let text = |key: &'static str| entry.get(key).and_then(Value::as_str).unwrap_or("");
        let mut refuse = |key: &'static str, detail: &str| {
            wrong.push(FieldError::invalid(path().child(key), text(key), detail));
        };
        if !matches!(text("operation"), "Apply" | "Update") {
            refuse("operation", "must be `Apply` or `Update`");
        }
        if !matches!(text("fieldsType"), "" | "FieldsV1") {
            refuse("fieldsType", "must be `FieldsV1`");
        }
        wrong.extend(manager_errors(text("manager"), || path().child("manager")));
        if text("subresource").len() > SUBRESOURCE_MAX {
            let path = path().child("subresource");
            wrong.push(FieldError::too_long(path, SUBRESOURCE_MAX));
        }
    }
}

/// Returns the errors of the name of a field manager.
pub fn validate_field_manager(manager: &str, path: &FieldPath) -> Vec<FieldError> {
    manager_errors(manager, || path.clone())
}

fn manager_errors(manager: &str, path: impl Fn() -> FieldPath) -> Vec<FieldError> {
    let mut wrong = Vec::new();
    if manager.len() > MANAGER_MAX {
        wrong.push(FieldError::too_long(path(), MANAGER_MAX));
    }
    // One error is enough, because each error repeats the whole name.
    let hidden = manager
        .char_indices()
        .find(|(_, character)| !names::is_printable(*character));
    if let Some((index, character)) = hidden {
        let detail = format!(
            "invalid character U+{:04X} (at position {index})",
            u32::from(character)
        );
        wrong.push(FieldError::invalid(path(), manager, detail));
    }
    wrong
}

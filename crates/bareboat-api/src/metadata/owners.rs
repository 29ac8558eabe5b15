//! Validation of owner references.

use crate::{FieldError, FieldErrors, FieldPath, Value};

/// The maximum number of references that the errors about several controllers show in total. Each
/// error shows the whole list, so a long list would need memory that grows with the square of its
/// length.
const MOST_SHOWN: usize = 10_000;

/// Appends the errors in a list of owner references.
pub(super) fn validate(owners: Option<&Value>, path: &FieldPath, wrong: &mut FieldErrors) {
    let Some(owners) = owners.and_then(Value::as_array) else {
        return;
    };
    let mut controller: Option<String> = None;
    // Each of these errors shows the whole list.
    let mut shown = 0;
    for owner in owners {
        let text = |key: &'static str| owner.get(key).and_then(Value::as_str).unwrap_or("");
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let mut must = |key: &'static str, filled: bool, message: &str| {
            if !filled {
                wrong.push(FieldError::invalid(path.child(key), text(key), message));
            }
        };
        must(
            "apiVersion",
            has_version(api_version),
            "version must not be empty",
        );
        must("kind", !kind.is_empty(), "must not be empty");
        must("name", !text("name").is_empty(), "must not be empty");
        must("uid", !text("uid").is_empty(), "must not be empty");
        if (api_version, kind) == ("v1", "Event") {
            wrong.push(FieldError::invalid(
                path.clone(),
                owner.clone(),
                "/v1, Kind=Event is disallowed from being an owner",
            ));
        }
        if owner.get("controller").and_then(Value::as_bool) != Some(true) {
            continue;
        }
        let this = format!("{kind}/{}", text("name"));
        match &controller {
            Some(_) if shown > MOST_SHOWN => {}
            Some(first) => {
                shown += owners.len();
                wrong.push(FieldError::invalid(
                path.clone(),
                Value::Array(owners.to_vec()),
                format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                ),
            ));
            }
            None => controller = Some(this),
        }
    }
}

/// Returns whether this is `v1` or `group/v1`; a text with more than one slash has no version.
fn has_version(api_version: &str) -> bool {
    match api_version.split_once('/') {
        None => !api_version.is_empty(),
        Some((_, version)) => !version.is_empty() && !version.contains('/'),
    }
}

//! Errors in the metadata of an embedded resource, with the text of Go's decoder.

use super::MetadataError;
use bareboat_api::{FieldError, FieldPath, Map, Value};

/// Returns the error of an embedded resource at `path`, with upstream's text.
pub(super) fn worded(error: MetadataError, resource: &Map, path: &FieldPath) -> MetadataError {
    let MetadataError::Own {
        path: wrong,
        expected,
        ..
    } = error
    else {
        return error;
    };
    let metadata = path.child("metadata");
    let inside = wrong.as_str().strip_prefix(metadata.as_str());
    let invalid = match inside {
        Some(inside) => {
            let value = resource.get("metadata").cloned().unwrap_or_default();
            let detail = in_go(inside.trim_start_matches('.'), expected, &value);
            FieldError::invalid(metadata, value, detail)
        }
        None => {
            let key = wrong.as_str().rsplit('.').next().unwrap_or_default();
            let value = resource.get(key).cloned().unwrap_or_default();
            FieldError::invalid(wrong, value, "must be a string")
        }
    };
    MetadataError::Embedded(invalid.to_string().into())
}

/// Returns the message of Go's JSON decoder for a metadata member of the wrong type.
fn in_go(inside: &str, expected: &str, metadata: &Value) -> String {
    if inside.is_empty() {
        let kind = go_kind(metadata);
        return format!("json: cannot unmarshal {kind} into Go value of type v1.ObjectMeta");
    }
    let mut steps = inside.split('.');
    let first = steps.next().unwrap_or_default();
    let (member, index) = first.split_once('[').unwrap_or((first, ""));
    let index = index.trim_end_matches(']').parse::<usize>().ok();
    let whole = metadata.get(member).unwrap_or(&Value::Null);
    let item = index.and_then(|index| whole.as_array()?.get(index));
    let record = match member {
        "ownerReferences" => Some("OwnerReference"),
        "managedFields" => Some("ManagedFieldsEntry"),
        _ => None,
    };
    // The rest of the path: a member of a record, or a key of labels or annotations, which may
    // contain dots.
    let rest = inside.get(first.len() + 1..);
    let (holder, field, found) = match (record, rest, item) {
        (Some(record), Some(rest), Some(item)) => (
            record,
            format!("{member}.{rest}"),
            item.get(rest).unwrap_or(&Value::Null),
        ),
        (_, Some(key), _) => (
            "ObjectMeta",
            member.to_owned(),
            whole.get(key).unwrap_or(&Value::Null),
        ),
        (_, None, Some(item)) => ("ObjectMeta", member.to_owned(), item),
        (_, None, None) => ("ObjectMeta", member.to_owned(), whole),
    };
    let kind = go_kind(found);
    let wanted = match (expected, record) {
        ("a boolean", _) => "bool",
        ("an integer", _) => "int64",
        ("a map of strings", _) => "map[string]string",
        ("a list of strings", _) => "[]string",
        ("a list of objects", Some(record)) => return list_of(kind, &field, record),
        ("an object", Some(record)) => {
            return format!(
                "json: cannot unmarshal {kind} into Go struct field ObjectMeta.{field} of type v1.{record}"
            );
        }
        ("a time as in RFC 3339", _) => match found {
            Value::String(text) => {
                return format!(
                    "parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse {text:?} as \"2006\""
                );
            }
            _ => return format!("json: cannot unmarshal {kind} into Go value of type string"),
        },
        _ => "string",
    };
    format!("json: cannot unmarshal {kind} into Go struct field {holder}.{field} of type {wanted}")
}

fn list_of(kind: &str, field: &str, record: &str) -> String {
    format!(
        "json: cannot unmarshal {kind} into Go struct field ObjectMeta.{field} of type []v1.{record}"
    )
}

/// Returns the JSON type of a value, as Go's errors name it.
fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Int(_) | Value::Float(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

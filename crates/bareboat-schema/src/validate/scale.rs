//! Validation of the fields that the scale subresource reads: replicas and a selector.

use bareboat_api::field::go_float;
use bareboat_api::kind::ScalePaths;
use bareboat_api::{FieldError, FieldErrors, FieldPath, Value};

/// Returns the value at a dotted path; the error names a parent of the wrong type.
pub fn find<'v>(object: &'v Value, path: &str) -> Result<Option<&'v Value>, String> {
    let mut value = object;
    let mut walked = String::new();
    for name in path.trim_start_matches('.').split('.') {
        let Some(map) = value.as_object() else {
            return Err(wrong_type(&walked, value, "map[string]interface{}"));
        };
        walked.push('.');
        walked.push_str(name);
        match map.get(name) {
            Some(member) => value = member,
            None => return Ok(None),
        }
    }
    Ok(Some(value))
}

/// Checks the desired number of replicas.
pub fn validate_spec(paths: &ScalePaths, object: &Value, errors: &mut FieldErrors) {
    replicas(object, &paths.spec_replicas, errors);
}

/// Checks the observed number of replicas, and the selector.
pub fn validate_status(paths: &ScalePaths, object: &Value, errors: &mut FieldErrors) {
    replicas(object, &paths.status_replicas, errors);
    let Some(path) = &paths.label_selector else {
        return;
    };
    let problem = match find(object, path) {
        Ok(None | Some(Value::String(_))) => return,
        Ok(Some(other)) => wrong_type(path, other, "string"),
        Err(problem) => problem,
    };
    errors.push(FieldError::invalid(
        FieldPath::new(path.as_str()),
        "",
        problem,
    ));
}

fn replicas(object: &Value, path: &str, errors: &mut FieldErrors) {
    let (value, problem) = match find(object, path) {
        Ok(None) => return,
        Ok(Some(Value::Int(number))) if *number < 0 => {
            (*number, "should be a non-negative integer".to_owned())
        }
        Ok(Some(Value::Int(number))) if *number > i64::from(i32::MAX) => (
            *number,
            format!("should be less than or equal to {}", i32::MAX),
        ),
        Ok(Some(Value::Int(_))) => return,
        Ok(Some(other)) => (0, wrong_type(path, other, "int64")),
        Err(problem) => (0, problem),
    };
    errors.push(FieldError::invalid(FieldPath::new(path), value, problem));
}

fn wrong_type(path: &str, value: &Value, expected: &str) -> String {
    let shown = match value {
        Value::String(text) => text.to_string(),
        Value::Float(number) => go_float(*number),
        Value::Null => "<nil>".to_owned(),
        other => other.to_string(),
    };
    format!(
        "{path} accessor error: {shown} is of the type {}, expected {expected}",
        go_type(value)
    )
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

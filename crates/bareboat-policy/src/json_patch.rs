//! Applies a JSON patch that an expression built.

use crate::apply::check_names;
use crate::mutating::to_json;
use bareboat_api::Value;
use bareboat_cel::{Object, Val};
use bareboat_merge::json_patch::{ApplyError, JsonPatch};

/// Patches the object; `None` if a test of the patch fails, which leaves it as it is. The error is the message for the
/// client.
pub(crate) fn patch(object: &Value, operations: &Val<'_>) -> Result<Option<Value>, String> {
    let Val::List(list) = operations else {
        return Err("type mismatch: JSONPatchType.expression should evaluate to array".to_owned());
    };
    let mut patch = Vec::with_capacity(list.len());
    for operation in list.iter() {
        let operation = operation.map_err(|error| error.to_string())?;
        patch.push(read(&operation)?);
    }
    let patch =
        JsonPatch::parse(Value::Array(patch)).map_err(|error| format!("JSON Patch: {error}"))?;
    let mut patched = object.clone();
    match patch.apply(&mut patched) {
        Ok(()) => Ok(Some(patched)),
        Err(ApplyError::TestFailed { .. }) => Ok(None),
        Err(error) => Err(format!("JSON Patch: {}", patch_failure(&error, object))),
    }
}

/// Returns why a patch does not apply to an object, in the words of the library that Kubernetes uses.
pub fn patch_failure(error: &ApplyError, object: &Value) -> String {
    match error {
        ApplyError::UnknownOperation(name) => {
            format!("Unexpected kind: {}", name.trim_matches('"'))
        }
        ApplyError::Missing { operation, path } => {
            let (parent, key) = path.rsplit_once('/').unwrap_or(("", path));
            let shown = match *operation {
                "add" | "remove" => format!("\"{path}\""),
                _ => path.clone(),
            };
            match *operation {
                "remove" if has_members(object, parent) => format!(
                    "error in remove for path: '{path}': Unable to remove nonexistent key: {key}: missing value"
                ),
                _ => format!(
                    "{operation} operation does not apply: doc is missing path: {shown}: missing value"
                ),
            }
        }
        ApplyError::TestFailed { .. } => format!("{error}: test failed"),
        other => other.to_string(),
    }
}

/// Returns whether there is an object at a path.
fn has_members(object: &Value, path: &str) -> bool {
    let steps = path.split('/').skip(1);
    let found = steps.into_iter().try_fold(object, |value, step| {
        let key = step.replace("~1", "/").replace("~0", "~");
        match value {
            Value::Array(items) => items.get(key.parse::<usize>().ok()?),
            value => value.get(&key),
        }
    });
    found.is_some_and(|value| value.as_object().is_some())
}

/// Returns an operation as JSON.
fn read(operation: &Val<'_>) -> Result<Value, String> {
    let Val::Object(Object::Built(built)) = operation else {
        return Err(
            "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch"
                .to_owned(),
        );
    };
    let mut json = Value::object();
    let members = json.make_object();
    for (field, value) in built.fields() {
        if field == "value" {
            check_names(value)?;
        }
        let value = to_json(value)
            .ok_or("JSONPath valueExpression evaluated to a type that could not marshal to JSON")?;
        if field == "from" && value.as_str() == Some("") {
            continue;
        }
        members.insert(field, value);
    }
    for member in ["op", "path"] {
        members.entry_or_insert_with(member, || Value::string(""));
    }
    Ok(json)
}

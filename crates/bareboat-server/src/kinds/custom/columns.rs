//! Table columns of custom kinds: JSONPath, compiled when a table is first printed.

use bareboat_api::jsonpath::JsonPath;
use bareboat_api::kind::{Column, Now};
use bareboat_api::{Str, Value};
use bareboat_schema::crd::{PrinterColumn, Version};
use std::sync::{Arc, OnceLock};

/// Returns the columns after the name: those of the definition, or the age.
pub fn of(version: &Version) -> Arc<[Column]> {
    if version.columns.is_empty() {
        return Arc::new([age()]);
    }
    version.columns.iter().map(column).collect()
}

fn age() -> Column {
    Column::age().typed("date").described(
        "CreationTimestamp is a timestamp representing the server time when this object was created.",
    )
}

fn column(printed: &PrinterColumn) -> Column {
    let path = printed.json_path.clone();
    let ty = printed.ty.clone();
    let compiled: OnceLock<Option<JsonPath>> = OnceLock::new();
    Column {
        name: printed.name.clone(),
        ty: printed.ty.clone(),
        format: printed.format.clone(),
        description: printed.description.clone(),
        priority: printed.priority,
        cell: Arc::new(move |object, now| {
            let path = compiled.get_or_init(|| JsonPath::compile(&path).ok());
            let found = path.as_ref().and_then(|path| path.first(object));
            found.map_or(Value::Null, |value| cell(&ty, value, now))
        }),
    }
}

/// Converts a value to a cell of the column's type; null if it has another type.
fn cell(ty: &Str, value: &Value, now: Now) -> Value {
    match (ty.as_str(), value) {
        (_, Value::Null) => Value::Null,
        ("integer", Value::Int(_)) => value.clone(),
        ("integer", Value::Float(float)) => Value::Int(*float as i64),
        ("number", Value::Int(_) | Value::Float(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("string", Value::String(_)) => value.clone(),
        ("string", other) => Value::from(bareboat_api::jsonpath::print(other)),
        ("date", time) => {
            let since = time.as_str().and_then(|time| now.since(time));
            since.map_or_else(|| Value::string("<invalid>"), Value::from)
        }
        _ => Value::Null,
    }
}

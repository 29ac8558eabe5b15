//! Converts the schema of a Rust type into a structural schema.

use bareboat_api::{Map, Value};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;

/// Keywords without a meaning in the API.
const IGNORED: [&str; 6] = [
    "$schema",
    "$defs",
    "definitions",
    "title",
    "examples",
    "writeOnly",
];

/// Returns the structural schema of a type.
pub(super) fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let text = serde_json::to_vec(&schema).unwrap_or_default();
    let mut value: Value = serde_json::from_slice(&text).unwrap_or_default();
    settle(&mut value);
    value
}

/// Converts schemars output to structural schemas.
fn settle(schema: &mut Value) {
    // The schema `true` accepts any value.
    if !matches!(schema, Value::Object(_)) {
        *schema = bareboat_api::value!({"x-kubernetes-preserve-unknown-fields": true});
        return;
    }
    let map = schema.make_object();
    for key in IGNORED {
        map.remove(key);
    }
    unwrap_option(map);
    unwrap_reference(map);
    merge_enum(map);
    split_type(map);
    if map.get("default").is_some_and(Value::is_null) {
        map.remove("default");
    }
    if map
        .get("additionalProperties")
        .and_then(Value::as_bool)
        .is_some()
    {
        map.remove("additionalProperties");
    }
    drop_foreign_format(map);
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = map.get_mut(key) {
            settle(inner);
        }
    }
    if let Some(properties) = map.get_mut("properties").and_then(Value::as_object_mut) {
        properties.iter_mut().for_each(|(_, inner)| settle(inner));
    }
}

/// Converts `Option<Struct>`, which schemars writes as "this or null".
fn unwrap_option(map: &mut Map) {
    let Some(Value::Array(choices)) = map.get("anyOf") else {
        return;
    };
    let is_null = |choice: &Value| choice.get("type").and_then(Value::as_str) == Some("null");
    if choices.len() != 2 || choices.iter().filter(|choice| is_null(choice)).count() != 1 {
        return;
    }
    let Some(inner) = choices.iter().find(|choice| !is_null(choice)).cloned() else {
        return;
    };
    map.remove("anyOf");
    take_over(map, inner);
    map.insert("nullable", Value::Bool(true));
}

/// Converts a reference with a description, which schemars writes as `allOf` with one schema.
fn unwrap_reference(map: &mut Map) {
    if let Some(Value::Array(parts)) = map.get("allOf")
        && let [inner] = parts.as_slice()
    {
        let inner = inner.clone();
        map.remove("allOf");
        take_over(map, inner);
    }
}

fn take_over(map: &mut Map, inner: Value) {
    if let Value::Object(members) = inner {
        for (key, value) in members {
            if !map.contains_key(&key) {
                map.insert(key, value);
            }
        }
    }
}

/// Converts an enum with documented variants, which schemars writes as one schema per variant.
fn merge_enum(map: &mut Map) {
    if let Some(constant) = map.remove("const") {
        map.insert("enum", Value::Array(vec![constant]));
    }
    let Some(Value::Array(choices)) = map.get("oneOf") else {
        return;
    };
    let mut values = Vec::new();
    for choice in choices {
        if choice.get("type").and_then(Value::as_str) != Some("string") {
            return;
        }
        match (choice.get("const"), choice.get("enum")) {
            (Some(constant), _) => values.push(constant.clone()),
            (None, Some(Value::Array(several))) => values.extend(several.iter().cloned()),
            _ => return,
        }
    }
    map.remove("oneOf");
    map.insert("type", Value::string("string"));
    map.insert("enum", Value::Array(values));
}

/// Converts `["string", "null"]` to a nullable string.
fn split_type(map: &mut Map) {
    let Some(Value::Array(types)) = map.get("type") else {
        return;
    };
    let nullable = types.iter().any(|name| name.as_str() == Some("null"));
    let others: Vec<Value> = types
        .iter()
        .filter(|name| name.as_str() != Some("null"))
        .cloned()
        .collect();
    match <[Value; 1]>::try_from(others) {
        Ok([only]) => {
            map.insert("type", only);
        }
        Err(_) => {
            map.remove("type");
            map.insert("x-kubernetes-preserve-unknown-fields", Value::Bool(true));
        }
    }
    if nullable {
        map.insert("nullable", Value::Bool(true));
        if let Some(Value::Array(values)) = map.get_mut("enum") {
            values.retain(|value| !value.is_null());
        }
    }
}

/// Removes Rust's own number formats; the bounds are enough.
fn drop_foreign_format(map: &mut Map) {
    let foreign = map.get_str("format").is_some_and(|format| {
        format.starts_with("uint")
            || matches!(format, "int8" | "int16" | "int" | "partial-date-time")
    });
    if foreign {
        map.remove("format");
    }
}

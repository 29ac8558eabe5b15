//! Schemas and data for tests, read from JSON.

#![allow(dead_code, clippy::unwrap_used)]

use bareboat_api::{Map, Value};
use bareboat_cel::SchemaView;

/// Parses JSON.
pub(crate) fn json(text: &str) -> Value {
    convert(&serde_json::from_str(text).unwrap())
}

fn convert(value: &serde_json::Value) -> Value {
    match value {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(value) => Value::Bool(*value),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(value) => Value::Int(value),
            None => Value::Float(number.as_f64().unwrap()),
        },
        serde_json::Value::String(text) => Value::string(text),
        serde_json::Value::Array(items) => items.iter().map(convert).collect(),
        serde_json::Value::Object(members) => {
            let members = members
                .iter()
                .map(|(key, value)| (key.as_str(), convert(value)));
            Value::Object(members.collect::<Map>())
        }
    }
}

/// A schema in the syntax of the tests.
pub(crate) struct Schema {
    raw: Value,
    properties: Vec<(String, Schema)>,
    items: Option<Box<Schema>>,
    additional: Option<Box<Schema>>,
    enum_values: Vec<Value>,
}

impl Schema {
    pub(crate) fn new(raw: &Value) -> Schema {
        let below = |key: &str| {
            let found = raw.get(key).filter(|schema| schema.as_object().is_some());
            found.map(|schema| Box::new(Schema::new(schema)))
        };
        let properties = raw.get("properties").and_then(Value::as_object);
        let properties = properties.into_iter().flat_map(|map| map.iter());
        let enum_values = raw.get("enum").and_then(Value::as_array);
        Schema {
            raw: raw.clone(),
            properties: properties
                .map(|(name, schema)| (name.to_owned(), Schema::new(schema)))
                .collect(),
            items: below("items"),
            additional: below("additionalProperties"),
            enum_values: enum_values.unwrap_or_default().to_vec(),
        }
    }

    fn text(&self, key: &str) -> &str {
        self.raw.get(key).and_then(Value::as_str).unwrap_or("")
    }

    fn flag(&self, key: &str) -> bool {
        self.raw.get(key).and_then(Value::as_bool).unwrap_or(false)
    }

    fn number(&self, key: &str) -> Option<i64> {
        self.raw.get(key).and_then(Value::as_i64)
    }

    fn names(&self, key: &str) -> Vec<&str> {
        let names = self.raw.get(key).and_then(Value::as_array);
        names
            .unwrap_or_default()
            .iter()
            .filter_map(Value::as_str)
            .collect()
    }
}

impl SchemaView for Schema {
    fn schema_type(&self) -> &str {
        self.text("type")
    }
    fn format(&self) -> &str {
        self.text("format")
    }
    fn nullable(&self) -> bool {
        self.flag("nullable")
    }
    fn items(&self) -> Option<&dyn SchemaView> {
        self.items
            .as_deref()
            .map(|schema| schema as &dyn SchemaView)
    }
    fn additional_properties(&self) -> Option<&dyn SchemaView> {
        self.additional
            .as_deref()
            .map(|schema| schema as &dyn SchemaView)
    }
    fn each_property<'a>(&'a self, visit: &mut dyn FnMut(&'a str, &'a dyn SchemaView)) {
        for (name, schema) in &self.properties {
            visit(name, schema);
        }
    }
    fn requires(&self, property: &str) -> bool {
        self.names("required").contains(&property)
    }
    fn has_default(&self) -> bool {
        self.raw.get("default").is_some()
    }
    fn enum_values(&self) -> &[Value] {
        &self.enum_values
    }
    fn max_length(&self) -> Option<i64> {
        self.number("maxLength")
    }
    fn max_items(&self) -> Option<i64> {
        self.number("maxItems")
    }
    fn max_properties(&self) -> Option<i64> {
        self.number("maxProperties")
    }
    fn int_or_string(&self) -> bool {
        self.flag("x-kubernetes-int-or-string")
    }
    fn embedded_resource(&self) -> bool {
        self.flag("x-kubernetes-embedded-resource")
    }
    fn list_type(&self) -> &str {
        self.text("x-kubernetes-list-type")
    }
    fn list_map_keys(&self) -> Vec<&str> {
        self.names("x-kubernetes-list-map-keys")
    }
}

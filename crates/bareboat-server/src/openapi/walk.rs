//! Walks schemas to find references and fill in descriptions.
//!
//! Only places that hold a schema are visited, so that a member named `$ref` or a default value is never taken for one.

use super::names::COMPONENTS;
use bareboat_api::{Map, Value};

/// Calls `visit` with every schema directly inside a schema.
pub(super) fn each_inner(members: &mut Map, visit: &mut dyn FnMut(&mut Value)) {
    for (name, inner) in members.iter_mut() {
        match name {
            "properties" | "patternProperties" | "definitions" => {
                if let Some(properties) = inner.as_object_mut() {
                    properties.iter_mut().for_each(|(_, schema)| visit(schema));
                }
            }
            "items" | "additionalProperties" | "additionalItems" | "not" => visit(inner),
            "allOf" | "anyOf" | "oneOf" => {
                if let Some(schemas) = inner.as_array_mut() {
                    schemas.iter_mut().for_each(&mut *visit);
                }
            }
            _ => {}
        }
    }
}

/// Calls `found` with the definition name of every reference in a schema.
pub(super) fn references(schema: &Value, found: &mut dyn FnMut(&str)) {
    let Some(members) = schema.as_object() else {
        return;
    };
    if let Some(name) = members
        .get_str("$ref")
        .and_then(|reference| reference.strip_prefix(COMPONENTS))
    {
        found(name);
    }
    for (name, inner) in members.iter() {
        match name {
            "properties" => {
                for schema in inner.as_object().into_iter().flat_map(Map::values) {
                    references(schema, found);
                }
            }
            "items" | "additionalProperties" | "not" => references(inner, found),
            "allOf" | "anyOf" | "oneOf" => {
                for schema in inner.as_array().unwrap_or_default() {
                    references(schema, found);
                }
            }
            _ => {}
        }
    }
}

/// Copies descriptions and the list of required members from a schema of the same type.
pub(super) fn describe(schema: &mut Value, described: &Value) {
    let (Some(members), Some(described)) = (schema.as_object_mut(), described.as_object()) else {
        return;
    };
    if let Some(text) = described.get_str("description") {
        members.insert("description", text.into());
    }
    let Some(theirs) = described.get("properties").and_then(Value::as_object) else {
        return;
    };
    // If members are listed and none is marked as required, none is required. Metadata is ignored: typed clients always
    // have it, but the API does not require it.
    let required: Vec<Value> = described
        .get("required")
        .and_then(Value::as_array)
        .unwrap_or_default()
        .iter()
        .filter(|name| name.as_str() != Some("metadata"))
        .cloned()
        .collect();
    if required.is_empty() {
        members.remove("required");
    } else {
        members.insert("required", required.into());
    }
    let Some(properties) = members.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    for (name, property) in properties.iter_mut() {
        let Some(text) = theirs
            .get(name)
            .and_then(|property| property.get("description"))
        else {
            continue;
        };
        let members = property.make_object();
        if let Some(reference) = members.remove("$ref") {
            let inner = Value::Object(Map::from_iter([("$ref", reference)]));
            members.insert("allOf", Value::Array(vec![inner]));
        }
        members.insert("description", text.clone());
    }
}

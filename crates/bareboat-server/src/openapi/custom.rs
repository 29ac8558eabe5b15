//! Published schemas of custom kinds.

use super::definitions::SchemaDialect;
use super::message::reference;
use super::names::META;
use super::walk;
use bareboat_api::{Map, Value, value};

const PRESERVES: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDS: &str = "x-kubernetes-embedded-resource";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

/// Returns the published form of a declared schema: with type meta and metadata.
pub(super) fn publish(mut declared: Value, form: SchemaDialect) -> Value {
    let bare = || value!({"type": "object"});
    if form == SchemaDialect::V2 && is_true(&declared, PRESERVES) {
        // OpenAPI 2 clients take the listed members for all members and reject others, so none is listed.
        return bare();
    }
    if declared.as_object().is_none_or(Map::is_empty) {
        return bare();
    }
    match form {
        SchemaDialect::V3 => complete(&mut declared),
        SchemaDialect::V2 => simplify(&mut declared),
    }
    let members = declared.make_object();
    insert_object_members(members, false);
    declared
}

/// Returns the schema of `apiVersion`.
pub(super) fn api_version() -> Value {
    value!({"type": "string", "description": "APIVersion defines the group and version this object is written in."})
}

/// Returns the schema of `kind`.
pub(super) fn kind() -> Value {
    value!({"type": "string", "description": "The kind of this object."})
}

fn metadata() -> Value {
    let meta = Value::Object(reference(&format!("{META}ObjectMeta")));
    value!({"allOf": [meta], "description": "Standard object's metadata: what the object says about itself."})
}

fn is_true(schema: &Value, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool) == Some(true)
}

/// Adds `apiVersion`, `kind` and `metadata` to the properties of an object's schema. If `required`, as in embedded
/// objects, also lists `apiVersion` and `kind` as required.
fn insert_object_members(members: &mut Map, required: bool) {
    let properties = members.object_mut("properties");
    properties.insert("apiVersion", api_version());
    properties.insert("kind", kind());
    properties.insert("metadata", metadata());
    if !required {
        return;
    }
    let list = members.entry_or_insert_with("required", || Value::Array(Vec::new()));
    if let Some(list) = list.as_array_mut() {
        for name in ["apiVersion", "kind"] {
            if !list.iter().any(|known| known.as_str() == Some(name)) {
                list.push(name.into());
            }
        }
    }
}

/// Expresses in plain schema what extensions imply.
fn complete(schema: &mut Value) {
    let embeds = is_true(schema, EMBEDS);
    let either = is_true(schema, INT_OR_STRING);
    let Some(members) = schema.as_object_mut() else {
        return;
    };
    walk::each_inner(members, &mut complete);
    if embeds {
        insert_object_members(members, true);
    }
    if either && !members.contains_key("anyOf") && !members.contains_key("allOf") {
        members.insert("anyOf", value!([{"type": "integer"}, {"type": "string"}]));
    }
}

/// Removes what OpenAPI 2 clients cannot parse, or would misread and then reject valid objects.
fn simplify(schema: &mut Value) {
    let nullable = is_true(schema, "nullable");
    let preserves = is_true(schema, PRESERVES);
    let embeds = is_true(schema, EMBEDS);
    let Some(members) = schema.as_object_mut() else {
        return;
    };
    for name in ["allOf", "anyOf", "oneOf", "not", "nullable", "default"] {
        members.remove(name);
    }
    if nullable || preserves {
        members.remove("items");
        members.remove("properties");
    }
    let ty = members.get_str("type").unwrap_or_default();
    let untyped = nullable
        || (preserves && ty == "object")
        || (ty == "array" && !members.contains_key("items"));
    if untyped {
        members.remove("type");
    }
    forget_nullable_requirements(members);
    walk::each_inner(members, &mut simplify);
    if embeds && !preserves && !nullable {
        insert_object_members(members, true);
    }
}

/// A nullable member cannot be required, because these clients treat null as absent.
fn forget_nullable_requirements(members: &mut Map) {
    let values_may_be_null = members
        .get("additionalProperties")
        .is_some_and(|inner| is_true(inner, "nullable"));
    let Some(Value::Array(mut required)) = members.remove("required") else {
        return;
    };
    if let Some(properties) = members.get("properties").and_then(Value::as_object) {
        required.retain(|name| {
            let property = name.as_str().and_then(|name| properties.get(name));
            !property.is_some_and(|property| is_true(property, "nullable"))
        });
    }
    if !required.is_empty() && !values_may_be_null {
        members.insert("required", required.into());
    }
}

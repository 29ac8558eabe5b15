//! Schemas of custom kinds, as they are published.

use super::definitions::Form;
use super::message::reference;
use super::names::META;
use super::walk;
use bareboat_api::{Map, Value, value};

const PRESERVES: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDS: &str = "x-kubernetes-embedded-resource";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

/// The published form of a declared schema: with type meta and metadata.
pub(super) fn publish(mut declared: Value, form: Form) -> Value {
    let bare = || value!({"type": "object"});
    if form == Form::V2 && is_true(&declared, PRESERVES) {
        // Old clients take the members that are listed for all there are, even type meta.
        return bare();
    }
    if declared.as_object().is_none_or(Map::is_empty) {
        return bare();
    }
    match form {
        Form::V3 => complete(&mut declared),
        Form::V2 => simplify(&mut declared),
    }
    let members = declared.make_object();
    insert_object_members(members, false);
    declared
}

/// `apiVersion` as every object has it.
pub(super) fn api_version() -> Value {
    value!({"type": "string", "description": "APIVersion defines the group and version this object is written in."})
}

/// `kind` as every object has it.
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

/// Inserts type meta and metadata; inside another object type meta must be there.
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

/// Says in plain schema what extensions imply.
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

/// Leaves out what old clients cannot read, or would misread and refuse valid objects for.
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

/// A member that may be null cannot be required of clients that take null for absent.
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

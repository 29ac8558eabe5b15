//! Schemas of built-in types, made from their protobuf messages.
//!
//! Messages have no descriptions and no list of required members; [`super::Sources`] provides those.

use super::names::{COMPONENTS, message_definition};
use bareboat_api::facts::{Cardinality, Field, Message, MessageRef, SchemaUnion, Type};
use bareboat_api::typing::ListType;
use bareboat_api::{Map, Value, value};

/// Returns the schema of a message, and the messages it refers to.
pub(super) fn schema(message: &Message, reached: &mut Vec<MessageRef>) -> Value {
    let mut properties = Map::with_capacity(message.fields.len());
    let mut required = Vec::new();
    for field in &message.fields {
        // A field without a JSON name is a struct that Go embeds; its members are listed beside it.
        if field.json.is_empty() {
            continue;
        }
        if let Type::Message(inner) | Type::SchemaUnion(_, inner) = field.ty {
            reached.push(inner);
        }
        if is_required(field) {
            required.push(Value::from(field.json.clone()));
        }
        properties.insert(field.json.clone(), property(field));
    }
    if ["apiVersion", "kind", "metadata"]
        .iter()
        .all(|name| message.field(name).is_some())
    {
        describe_kind(&mut properties);
    }
    let mut members = Map::new();
    members.insert("type", value!("object"));
    if !properties.is_empty() {
        members.insert("properties", properties.into());
    }
    if !required.is_empty() {
        members.insert("required", required.into());
    }
    if message.atomic {
        members.insert("x-kubernetes-map-type", value!("atomic"));
    }
    Value::Object(members)
}

/// Adds descriptions to the members that all kinds have.
fn describe_kind(properties: &mut Map) {
    for (name, text) in [
        (
            "apiVersion",
            "APIVersion defines the group and version this object is written in.",
        ),
        ("kind", "The kind of this object."),
        (
            "metadata",
            "Standard object's metadata: what the object says about itself.",
        ),
        ("spec", "What is wanted."),
        ("status", "What was found."),
    ] {
        if let Some(property) = properties.get_mut(name)
            && let Some(members) = property.as_object_mut()
        {
            members.insert("description", text.into());
            *property = referring(std::mem::take(members));
        }
    }
}

/// Returns whether clients must send a member: one that is printed even if empty.
///
/// A struct that is not a pointer is always printed, so nothing follows for it; requiring it would make clients reject
/// valid objects.
fn is_required(field: &Field) -> bool {
    !field.omit_empty && !field.optional && field.default.is_none() && !is_struct(field)
}

fn is_struct(field: &Field) -> bool {
    field.cardinality == Cardinality::One
        && matches!(
            field.ty,
            Type::Message(_)
                | Type::Time
                | Type::MicroTime
                | Type::Duration
                | Type::Quantity
                | Type::RawExtension
                | Type::Json
                | Type::FieldsV1
                | Type::IntOrString
        )
}

fn property(field: &Field) -> Value {
    let mut members = match field.cardinality {
        Cardinality::One => once(field),
        Cardinality::List => {
            let mut members = Map::new();
            members.insert("type", value!("array"));
            members.insert("items", element(field));
            insert_list_type(&mut members, field);
            members
        }
        Cardinality::Map => {
            let mut members = Map::new();
            members.insert("type", value!("object"));
            members.insert("additionalProperties", element(field));
            members
        }
    };
    if field.cardinality != Cardinality::List {
        if field.atomic {
            members.insert("x-kubernetes-map-type", value!("atomic"));
        } else if field.granular {
            members.insert("x-kubernetes-map-type", value!("granular"));
        }
    }
    if let Some(default) = &field.default {
        members.insert("default", default.clone());
    }
    insert_patch_strategy(&mut members, field);
    referring(members)
}

fn once(field: &Field) -> Map {
    let mut members = base(field.ty);
    insert_values(&mut members, field);
    if field.optional {
        return members;
    }
    let zero = match field.ty {
        Type::Message(_) => Some(value!({})),
        _ if field.omit_empty => None,
        other => zero(other),
    };
    if let Some(zero) = zero {
        members.insert("default", zero);
    }
    members
}

/// Lists the allowed values of a member, if they are known.
fn insert_values(members: &mut Map, field: &Field) {
    if !field.values.is_empty() {
        let values = field
            .values
            .iter()
            .map(|value| Value::String(value.clone()));
        members.insert("enum", Value::Array(values.collect()));
    }
}

fn element(field: &Field) -> Value {
    let mut members = base(field.ty);
    insert_values(&mut members, field);
    let zero = match field.ty {
        Type::Message(_) => Some(value!({})),
        other => zero(other),
    };
    if let Some(zero) = zero {
        members.insert("default", zero);
    }
    referring(members)
}

/// Returns the default of an absent member.
fn zero(ty: Type) -> Option<Value> {
    match ty {
        Type::Bool => Some(value!(false)),
        Type::Int32 | Type::Int64 => Some(value!(0)),
        Type::Double => Some(value!(0)),
        Type::String => Some(value!("")),
        _ => None,
    }
}

/// Wraps a reference in an `allOf` if it has siblings, because `$ref` must be alone.
fn referring(mut members: Map) -> Value {
    if members.len() > 1
        && let Some(reference) = members.remove("$ref")
    {
        members.insert("allOf", value!([{"$ref": reference}]));
    }
    Value::Object(members)
}

fn base(ty: Type) -> Map {
    let simple = |ty: &str, format: &str| {
        let mut members = Map::new();
        members.insert("type", ty.into());
        if !format.is_empty() {
            members.insert("format", format.into());
        }
        members
    };
    match ty {
        Type::Bool => simple("boolean", ""),
        Type::Int32 => simple("integer", "int32"),
        Type::Int64 => simple("integer", "int64"),
        Type::Double => simple("number", "double"),
        Type::String => simple("string", ""),
        Type::Bytes => simple("string", "byte"),
        Type::Strings => {
            let mut members = simple("array", "");
            members.insert("items", value!({"type": "string", "default": ""}));
            members
        }
        Type::Message(message) => reference(&message_definition(&message.name)),
        other => reference(shared_type(other).unwrap_or_default()),
    }
}

/// Returns the definition of a type that is a struct in Go but one value in JSON.
pub(super) fn shared_type(ty: Type) -> Option<&'static str> {
    Some(match ty {
        Type::Time => "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
        Type::MicroTime => "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime",
        Type::Duration => "io.k8s.apimachinery.pkg.apis.meta.v1.Duration",
        Type::FieldsV1 => "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
        Type::Quantity => "io.k8s.apimachinery.pkg.api.resource.Quantity",
        Type::IntOrString => "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
        Type::RawExtension => "io.k8s.apimachinery.pkg.runtime.RawExtension",
        Type::Json => "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
        Type::SchemaUnion(SchemaUnion::OrArray, _) => {
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray"
        }
        Type::SchemaUnion(SchemaUnion::OrBool, _) => {
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool"
        }
        Type::SchemaUnion(SchemaUnion::OrStringArray, _) => {
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray"
        }
        _ => return None,
    })
}

/// Returns a schema that is only a reference.
pub(super) fn reference(definition: &str) -> Map {
    let mut members = Map::new();
    members.insert("$ref", format!("{COMPONENTS}{definition}").into());
    members
}

/// Lists without a type are atomic, so only other types are marked.
fn insert_list_type(members: &mut Map, field: &Field) {
    match field.list {
        ListType::Atomic => {}
        ListType::Set => {
            members.insert("x-kubernetes-list-type", value!("set"));
        }
        ListType::Map => {
            members.insert("x-kubernetes-list-type", value!("map"));
            let keys = field.keys.iter().map(|key| key.name.clone()).collect();
            members.insert("x-kubernetes-list-map-keys", keys);
        }
    }
}

fn insert_patch_strategy(members: &mut Map, field: &Field) {
    let strategy = match (field.patch_merge, field.retain_keys) {
        (true, true) => "merge,retainKeys",
        (true, false) => "merge",
        (false, true) => "retainKeys",
        (false, false) => return,
    };
    members.insert("x-kubernetes-patch-strategy", strategy.into());
    if let Some(key) = &field.merge_key {
        members.insert("x-kubernetes-patch-merge-key", key.clone().into());
    }
}

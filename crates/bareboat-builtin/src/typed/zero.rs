//! Zero values: what is printed for an unset member, and which values count as empty.

use bareboat_api::facts::{Cardinality, Field, Message, Type};
use bareboat_api::{Map, Str, Value};

/// Returns whether a non-pointer value counts as unset.
pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Int(number) => *number == 0,
        Value::Float(number) => *number == 0.0,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

/// Adds unset members that are always printed.
pub(super) fn complete(message: &Message, map: &mut Map) {
    for field in &message.fields {
        if !field.omit_empty && !field.json.is_empty() && !map.contains_key(&field.json) {
            map.insert(field.json.clone(), of(field));
        }
    }
}

/// Returns the value printed for an unset member.
pub(super) fn of(field: &Field) -> Value {
    if field.optional || field.cardinality != Cardinality::One {
        return Value::Null;
    }
    match field.ty {
        Type::Bytes => Value::Null,
        ty => element(ty),
    }
}

/// Returns the value of `null` as an element of a list or map.
pub(super) fn element(ty: Type) -> Value {
    match ty {
        Type::Bool => Value::Bool(false),
        Type::Int32 | Type::Int64 | Type::IntOrString => Value::Int(0),
        Type::Double => Value::Int(0),
        Type::String | Type::Bytes => Value::String(Str::default()),
        Type::Duration => Value::String(Str::const_new("0s")),
        Type::Quantity => Value::String(Str::const_new("0")),
        Type::Time
        | Type::MicroTime
        | Type::RawExtension
        | Type::Json
        | Type::FieldsV1
        | Type::SchemaUnion(..)
        | Type::Strings => Value::Null,
        Type::Message(message) => {
            let mut map = Map::new();
            complete(message.get(), &mut map);
            Value::Object(map)
        }
    }
}

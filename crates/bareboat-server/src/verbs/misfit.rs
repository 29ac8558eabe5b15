//! Describes values that do not fit their type, in the messages that clients of strategic patches know.

use bareboat_api::Value;
use bareboat_api::facts::{Cardinality, Message, Type};

/// Describes the first member with a wrong structure; `None` if only scalars are wrong.
pub(super) fn describe(message: &Message, object: &Value) -> Option<String> {
    let Some(members) = object.as_object() else {
        return Some(format!("cannot restore struct from: {}", form(object)));
    };
    members.iter().find_map(|(name, value)| {
        let field = message.field(name)?;
        match (field.cardinality, value) {
            (_, Value::Null) => None,
            (Cardinality::One, _) => of_type(field.ty, value),
            (Cardinality::List, Value::Array(items)) => {
                items.iter().find_map(|item| of_type(field.ty, item))
            }
            (Cardinality::List, _) => Some(format!("cannot restore slice from {}", form(value))),
            (Cardinality::Map, Value::Object(map)) => {
                map.iter().find_map(|(_, value)| of_type(field.ty, value))
            }
            (Cardinality::Map, _) => Some(format!("cannot restore map from {}", form(value))),
        }
    })
}

fn of_type(ty: Type, value: &Value) -> Option<String> {
    match ty {
        Type::Message(message) if !value.is_null() => describe(message.get(), value),
        _ => None,
    }
}

/// Returns Go's name for the type of a value.
fn form(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

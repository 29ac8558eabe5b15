//! Converts JSON to values, one node at a time, by the declared type.
//!
//! Upstream: apiserver pkg/cel/common/valuesunstructured.go.

use bareboat_api::Value;
use base64::Engine;

use super::time::{parse_date, parse_format_duration, parse_timestamp};
use super::{List, MapVal, Object, Val};
use crate::decl::{DeclType, JsonType};
use crate::error::EvalError;

impl<'a> Val<'a> {
    /// Converts a JSON value by its declared type.
    pub fn of(value: &'a Value, decl: &'a DeclType) -> Result<Val<'a>, EvalError> {
        Ok(match (&decl.json_type, value) {
            (JsonType::Dyn, value) => Val::of_json(value),
            (_, Value::Null) if decl.nullable => Val::Null,
            (_, Value::Null) => {
                return Err(EvalError::new(
                    "invalid data, got null for schema with nullable=false",
                ));
            }
            (JsonType::Object(ty), Value::Object(map)) => Val::Object(Object::Json { map, ty }),
            (JsonType::Map { values }, Value::Object(map)) => Val::Map(MapVal::Json {
                map,
                values: Some(values),
            }),
            (JsonType::List { .. }, Value::Array(items)) => Val::List(List::Json {
                items,
                decl: Some(decl),
            }),
            (JsonType::Bool, Value::Bool(value)) => Val::Bool(*value),
            (JsonType::Int, Value::Int(value)) => Val::Int(*value),
            (JsonType::Uint, Value::Int(value)) if *value >= 0 => Val::Uint(*value as u64),
            (JsonType::Int, Value::Float(_)) => match value.as_i64() {
                Some(value) => Val::Int(value),
                None => return Err(mismatch("int", value)),
            },
            (JsonType::Double, Value::Float(value)) => Val::Double(*value),
            (JsonType::Double, Value::Int(value)) => Val::Double(*value as f64),
            (JsonType::IntOrString, Value::Int(value)) => Val::Int(*value),
            (JsonType::String | JsonType::IntOrString, Value::String(text)) => Val::str(text),
            (JsonType::IntOrString, _) => {
                return Err(EvalError::new(
                    "invalid data, expected XIntOrString value to be either a string or integer",
                ));
            }
            (json_type, Value::String(text)) => formatted(json_type, text)?,
            (json_type, _) => return Err(mismatch(shape_name(json_type), value)),
        })
    }

    /// Converts a JSON value by its JSON type.
    pub fn of_json(value: &'a Value) -> Val<'a> {
        match value {
            Value::Null => Val::Null,
            Value::Bool(value) => Val::Bool(*value),
            Value::Int(value) => Val::Int(*value),
            Value::Float(value) => Val::Double(*value),
            Value::String(text) => Val::str(text),
            Value::Array(items) => Val::List(List::Json { items, decl: None }),
            Value::Object(map) => Val::Map(MapVal::Json { map, values: None }),
        }
    }

    /// Converts an element of a list of that type.
    pub(super) fn of_item(
        value: &'a Value,
        list: Option<&'a DeclType>,
    ) -> Result<Val<'a>, EvalError> {
        match list.map(|list| &list.json_type) {
            Some(JsonType::List { items, .. }) => Val::of(value, items),
            _ => Ok(Val::of_json(value)),
        }
    }

    /// Converts a value to JSON, if it has a JSON form.
    pub fn to_json(&self) -> Option<Value> {
        Some(match self {
            Val::Null => Value::Null,
            Val::Bool(value) => Value::Bool(*value),
            Val::Int(value) => Value::Int(*value),
            Val::Uint(value) => match i64::try_from(*value) {
                Ok(value) => Value::Int(value),
                Err(_) => Value::Float(*value as f64),
            },
            Val::Double(value) if value.is_finite() => Value::Float(*value),
            Val::String(text) => Value::string(text.as_str()),
            Val::Bytes(bytes) => Value::String(
                base64::engine::general_purpose::STANDARD
                    .encode(bytes)
                    .into(),
            ),
            Val::Duration(_) | Val::Timestamp(_) => Value::String(super::print(self).into()),
            Val::List(List::Json { items, .. }) => Value::Array(items.to_vec()),
            Val::List(list) => {
                let items = list.to_vec().ok()?;
                Value::Array(items.iter().map(Val::to_json).collect::<Option<_>>()?)
            }
            Val::Map(MapVal::Json { map, .. }) | Val::Object(Object::Json { map, .. }) => {
                Value::Object((*map).clone())
            }
            Val::Map(MapVal::Values(entries)) => {
                let mut object = Value::object();
                let members = object.make_object();
                for (key, value) in entries.iter() {
                    members.insert(super::print(key), value.to_json()?);
                }
                object
            }
            Val::Object(Object::Built(built)) => {
                let mut object = Value::object();
                let members = object.make_object();
                for (name, value) in &built.fields {
                    let declared = built.ty.field(name);
                    let property = declared.map_or(name.as_str(), |field| field.property());
                    members.insert(property, value.to_json()?);
                }
                object
            }
            Val::Optional(Some(inner)) => return inner.to_json(),
            Val::Special(special) => Value::String(special.0.text()?.into()),
            Val::Double(_) | Val::Type(_) | Val::Optional(None) => return None,
        })
    }

    /// Returns the approximate size of a value's JSON in bytes; `None` if it exceeds `limit`.
    ///
    /// A value may contain the same data many times without using memory for it, but its JSON
    /// would.
    pub fn json_size(&self, limit: usize) -> Option<usize> {
        let mut left = limit;
        self.weigh(&mut left)?;
        Some(limit - left)
    }

    fn weigh(&self, left: &mut usize) -> Option<()> {
        match self {
            Val::String(text) => take(left, text.as_str().len() + 2),
            Val::Bytes(bytes) => take(left, bytes.len().div_ceil(3) * 4 + 2),
            Val::List(List::Json { items, .. }) => {
                items.iter().try_for_each(|item| weigh_json(item, left))
            }
            Val::List(List::Values { items, .. }) => {
                take(left, 2)?;
                items.iter().try_for_each(|item| {
                    take(left, 1)?;
                    item.weigh(left)
                })
            }
            Val::Map(MapVal::Json { map, .. }) | Val::Object(Object::Json { map, .. }) => {
                map.iter().try_for_each(|(name, member)| {
                    take(left, name.len() + 4)?;
                    weigh_json(member, left)
                })
            }
            Val::Map(MapVal::Values(entries)) => entries.iter().try_for_each(|(key, value)| {
                key.weigh(left)?;
                value.weigh(left)
            }),
            Val::Object(Object::Built(built)) => {
                built.fields.iter().try_for_each(|(name, value)| {
                    take(left, name.len() + 4)?;
                    value.weigh(left)
                })
            }
            Val::Optional(Some(inner)) => inner.weigh(left),
            _ => take(left, 24),
        }
    }
}

fn weigh_json(value: &Value, left: &mut usize) -> Option<()> {
    match value {
        Value::String(text) => take(left, text.len() + 2),
        Value::Array(items) => {
            take(left, 2)?;
            items.iter().try_for_each(|item| weigh_json(item, left))
        }
        Value::Object(map) => {
            take(left, 2)?;
            map.iter().try_for_each(|(name, member)| {
                take(left, name.len() + 4)?;
                weigh_json(member, left)
            })
        }
        _ => take(left, 8),
    }
}

fn take(left: &mut usize, bytes: usize) -> Option<()> {
    *left = left.checked_sub(bytes)?;
    Some(())
}

fn formatted<'a>(json_type: &JsonType, text: &'a str) -> Result<Val<'a>, EvalError> {
    let bad = |what: &str| EvalError::new(format!("Invalid {what} {text}"));
    Ok(match json_type {
        JsonType::Bytes => {
            let decoded = base64::engine::general_purpose::STANDARD.decode(text);
            Val::bytes(decoded.map_err(|_| bad("byte formatted string"))?)
        }
        JsonType::Duration => {
            Val::Duration(parse_format_duration(text).ok_or_else(|| bad("duration"))?)
        }
        JsonType::Date => {
            Val::Timestamp(parse_date(text).ok_or_else(|| bad("date formatted string"))?)
        }
        JsonType::Timestamp => {
            Val::Timestamp(parse_timestamp(text).ok_or_else(|| bad("date-time formatted string"))?)
        }
        _ => {
            return Err(EvalError::new(format!(
                "invalid data, expected {}, got string",
                shape_name(json_type)
            )));
        }
    })
}

fn mismatch(expected: &str, value: &Value) -> EvalError {
    EvalError::new(match expected {
        "map" => "invalid data, expected a map for the provided schema with type=object".to_owned(),
        "array" => {
            "invalid data, expected an array for the provided schema with type=array".to_owned()
        }
        _ => format!(
            "invalid data, expected {expected}, got {}",
            value.type_name()
        ),
    })
}

fn shape_name(json_type: &JsonType) -> &'static str {
    match json_type {
        JsonType::Bool => "bool",
        JsonType::Int => "int",
        JsonType::Uint => "uint",
        JsonType::Double => "float",
        JsonType::List { .. } => "array",
        JsonType::Map { .. } | JsonType::Object(_) => "map",
        JsonType::Host => "a value of the host",
        _ => "string",
    }
}

//! From JSON to values, one node at a time, as the declared type says.
//!
//! Upstream: apiserver pkg/cel/common/valuesunstructured.go.

use bareboat_api::Value;
use base64::Engine;

use super::time::{parse_date, parse_format_duration, parse_timestamp};
use super::{List, MapVal, Object, Val};
use crate::decl::{DeclType, Shape};
use crate::error::EvalError;

impl<'a> Val<'a> {
    /// A JSON value read as its declared type says.
    pub fn of(value: &'a Value, decl: &'a DeclType) -> Result<Val<'a>, EvalError> {
        Ok(match (&decl.shape, value) {
            (Shape::Dyn, value) => Val::of_json(value),
            (_, Value::Null) if decl.nullable => Val::Null,
            (_, Value::Null) => {
                return Err(EvalError::new(
                    "invalid data, got null for schema with nullable=false",
                ));
            }
            (Shape::Object(ty), Value::Object(map)) => Val::Object(Object::Json { map, ty }),
            (Shape::Map { values }, Value::Object(map)) => Val::Map(MapVal::Json {
                map,
                values: Some(values),
            }),
            (Shape::List { .. }, Value::Array(items)) => Val::List(List::Json {
                items,
                decl: Some(decl),
            }),
            (Shape::Bool, Value::Bool(value)) => Val::Bool(*value),
            (Shape::Int, Value::Int(value)) => Val::Int(*value),
            (Shape::Uint, Value::Int(value)) if *value >= 0 => Val::Uint(*value as u64),
            (Shape::Int, Value::Float(_)) => match value.as_i64() {
                Some(value) => Val::Int(value),
                None => return Err(mismatch("int", value)),
            },
            (Shape::Double, Value::Float(value)) => Val::Double(*value),
            (Shape::Double, Value::Int(value)) => Val::Double(*value as f64),
            (Shape::IntOrString, Value::Int(value)) => Val::Int(*value),
            (Shape::String | Shape::IntOrString, Value::String(text)) => Val::str(text),
            (Shape::IntOrString, _) => {
                return Err(EvalError::new(
                    "invalid data, expected XIntOrString value to be either a string or integer",
                ));
            }
            (shape, Value::String(text)) => formatted(shape, text)?,
            (shape, _) => return Err(mismatch(shape_name(shape), value)),
        })
    }

    /// A JSON value read as it stands.
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

    /// An element of a list of that type.
    pub(super) fn of_item(
        value: &'a Value,
        list: Option<&'a DeclType>,
    ) -> Result<Val<'a>, EvalError> {
        match list.map(|list| &list.shape) {
            Some(Shape::List { items, .. }) => Val::of(value, items),
            _ => Ok(Val::of_json(value)),
        }
    }

    /// The JSON of a value, for those that have one.
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

    /// Roughly how many bytes the JSON of a value takes; nothing if it is more than `limit`.
    ///
    /// A value may hold the same data many times over without taking memory for it, which its JSON would.
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

fn formatted<'a>(shape: &Shape, text: &'a str) -> Result<Val<'a>, EvalError> {
    let bad = |what: &str| EvalError::new(format!("Invalid {what} {text}"));
    Ok(match shape {
        Shape::Bytes => {
            let decoded = base64::engine::general_purpose::STANDARD.decode(text);
            Val::bytes(decoded.map_err(|_| bad("byte formatted string"))?)
        }
        Shape::Duration => {
            Val::Duration(parse_format_duration(text).ok_or_else(|| bad("duration"))?)
        }
        Shape::Date => {
            Val::Timestamp(parse_date(text).ok_or_else(|| bad("date formatted string"))?)
        }
        Shape::Timestamp => {
            Val::Timestamp(parse_timestamp(text).ok_or_else(|| bad("date-time formatted string"))?)
        }
        _ => {
            return Err(EvalError::new(format!(
                "invalid data, expected {}, got string",
                shape_name(shape)
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

fn shape_name(shape: &Shape) -> &'static str {
    match shape {
        Shape::Bool => "bool",
        Shape::Int => "int",
        Shape::Uint => "uint",
        Shape::Double => "float",
        Shape::List { .. } => "array",
        Shape::Map { .. } | Shape::Object(_) => "map",
        Shape::Host => "a value of the host",
        _ => "string",
    }
}

//! Encodes values as messages.

use super::raw::{Wire, write_bytes, write_nested, write_number, write_tag};
use super::{ProtoError, encode_envelope};
use bareboat_api::facts::{Cardinality, Field, Message, SchemaUnion, Type};
use bareboat_api::time::{Timestamp, parse_duration};
use bareboat_api::value::MAX_DEPTH;
use bareboat_api::{Map, Value};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

/// Encodes an object as a message in its envelope, with the object's own apiVersion and kind.
pub fn encode_object(message: &Message, object: &Value) -> Result<Vec<u8>, ProtoError> {
    let text = |key| object.get(key).and_then(Value::as_str).unwrap_or("");
    let mut out = Vec::with_capacity(256);
    encode_envelope(text("apiVersion"), text("kind"), &mut out, |out| {
        encode_message(message, object, out)
    })?;
    Ok(out)
}

/// Appends a message without an envelope; unknown members are left out.
pub fn encode_message(
    message: &Message,
    value: &Value,
    out: &mut Vec<u8>,
) -> Result<(), ProtoError> {
    write_message(message, value, 0, out)
}

/// Invariant: all recursion passes through here, so `MAX_DEPTH` bounds the stack.
fn write_message(
    message: &Message,
    value: &Value,
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), ProtoError> {
    const NONE: &Map = &Map::new();
    if depth > MAX_DEPTH {
        return Err(ProtoError::new(format!(
            "nested deeper than {MAX_DEPTH} levels"
        )));
    }
    let map = match value {
        Value::Object(map) => map,
        Value::Null => NONE,
        other => return Err(mismatch("an object", other)),
    };
    for field in message.numbered_fields() {
        // The members of an inline message are among those of its parent.
        let inline = field.json.is_empty();
        let member = if inline {
            Some(value)
        } else {
            map.get(&field.json)
        };
        let member = member.unwrap_or(&Value::Null);
        write_field(field, member, depth, out).map_err(|error| {
            if inline {
                error
            } else {
                error.inside(&field.json)
            }
        })?;
    }
    Ok(())
}

fn write_field(
    field: &Field,
    value: &Value,
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), ProtoError> {
    match (field.cardinality, value) {
        (Cardinality::One, Value::Null) => {
            // Pointers and slices of Go are written only when they are set.
            let skipped = field.optional || matches!(field.ty, Type::Bytes | Type::Strings);
            if skipped {
                Ok(())
            } else {
                write_value(field.number, field.ty, value, depth, out)
            }
        }
        (Cardinality::One, _) => write_value(field.number, field.ty, value, depth, out),
        (Cardinality::List | Cardinality::Map, Value::Null) => Ok(()),
        (Cardinality::List, Value::Array(items)) => items
            .iter()
            .try_for_each(|item| write_value(field.number, field.ty, item, depth, out)),
        (Cardinality::List, other) => Err(mismatch("an array", other)),
        (Cardinality::Map, Value::Object(map)) => map.iter().try_for_each(|(key, item)| {
            write_nested(field.number, out, |out| {
                write_bytes(1, key.as_bytes(), out);
                if matches!((field.ty, item), (Type::Bytes, Value::Null)) {
                    return Ok(());
                }
                write_value(2, field.ty, item, depth, out)
            })
        }),
        (Cardinality::Map, other) => Err(mismatch("an object", other)),
    }
}

/// Appends one member; `null` is encoded as the zero value of its type.
fn write_value(
    number: u32,
    ty: Type,
    value: &Value,
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), ProtoError> {
    match ty {
        Type::Bool => write_number(number, u64::from(boolean(value)?), out),
        Type::Int32 | Type::Int64 => write_number(number, integer(value)? as u64, out),
        Type::Double => {
            write_tag(number, Wire::Fixed64, out);
            let float = match value {
                Value::Null => 0.0,
                other => other.as_f64().ok_or_else(|| mismatch("a number", other))?,
            };
            out.extend_from_slice(&float.to_bits().to_le_bytes());
        }
        Type::String => write_bytes(number, string(value)?.as_bytes(), out),
        Type::Bytes => {
            let bytes = BASE64
                .decode(string(value)?)
                .map_err(|error| ProtoError::new(format!("invalid base64: {error}")))?;
            write_bytes(number, &bytes, out);
        }
        Type::Time | Type::MicroTime => return write_time(number, ty, value, out),
        Type::Duration => {
            let nanos = match value {
                Value::Null => 0,
                Value::Int(nanos) => *nanos,
                other => parse_duration(string(other)?)
                    .map_err(|error| ProtoError::new(error.to_string()))?,
            };
            return write_nested(number, out, |out| {
                write_number(1, nanos as u64, out);
                Ok(())
            });
        }
        Type::Quantity => {
            let text = match value {
                Value::Null => "0".to_owned(),
                Value::String(text) => text.to_string(),
                Value::Int(_) | Value::Float(_) => value.to_string(),
                other => return Err(mismatch("a quantity", other)),
            };
            return write_nested(number, out, |out| {
                write_bytes(1, text.as_bytes(), out);
                Ok(())
            });
        }
        Type::IntOrString => return write_int_or_string(number, value, out),
        Type::RawExtension | Type::Json | Type::FieldsV1 => {
            return write_nested(number, out, |out| {
                if value.is_null() {
                    return Ok(());
                }
                write_nested(1, out, |out| {
                    value.write_json(out);
                    Ok(())
                })
            });
        }
        Type::Strings => return write_strings(number, value, out),
        Type::SchemaUnion(union, schema) => {
            return write_nested(number, out, |out| {
                write_union(union, schema.get(), value, depth, out)
            });
        }
        Type::Message(message) => {
            return write_nested(number, out, |out| {
                write_message(message.get(), value, depth + 1, out)
            });
        }
    }
    Ok(())
}

fn write_time(number: u32, ty: Type, value: &Value, out: &mut Vec<u8>) -> Result<(), ProtoError> {
    let time = match value {
        Value::Null => Timestamp::ZERO,
        other => {
            Timestamp::parse(string(other)?).map_err(|error| ProtoError::new(error.to_string()))?
        }
    };
    write_nested(number, out, |out| {
        if time == Timestamp::ZERO {
            return Ok(());
        }
        let nanos = match ty {
            Type::MicroTime => time.nanos / 1000 * 1000,
            _ => 0,
        };
        write_number(1, time.seconds as u64, out);
        write_number(2, u64::from(nanos), out);
        Ok(())
    })
}

fn write_int_or_string(number: u32, value: &Value, out: &mut Vec<u8>) -> Result<(), ProtoError> {
    let (kind, integer, text) = match value {
        Value::String(text) => (1, 0, text.as_str()),
        other => (0, integer(other)?, ""),
    };
    write_nested(number, out, |out| {
        write_number(1, kind, out);
        write_number(2, integer as u64, out);
        write_bytes(3, text.as_bytes(), out);
        Ok(())
    })
}

fn write_strings(number: u32, value: &Value, out: &mut Vec<u8>) -> Result<(), ProtoError> {
    let items = match value {
        Value::Null => &[],
        Value::Array(items) => items.as_slice(),
        other => return Err(mismatch("an array", other)),
    };
    write_nested(number, out, |out| {
        items.iter().try_for_each(|item| {
            write_bytes(1, string(item)?.as_bytes(), out);
            Ok(())
        })
    })
}

fn write_union(
    union: SchemaUnion,
    schema: &Message,
    value: &Value,
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), ProtoError> {
    let nested = |number: u32, value: &Value, out: &mut Vec<u8>| {
        write_nested(number, out, |out| {
            write_message(schema, value, depth + 1, out)
        })
    };
    match (union, value) {
        (_, Value::Null) => Ok(()),
        (SchemaUnion::OrBool, Value::Bool(allows)) => {
            write_number(1, u64::from(*allows), out);
            Ok(())
        }
        (SchemaUnion::OrBool, value) => {
            write_number(1, 1, out);
            nested(2, value, out)
        }
        (SchemaUnion::OrArray, Value::Array(schemas)) => {
            schemas.iter().try_for_each(|schema| nested(2, schema, out))
        }
        (SchemaUnion::OrStringArray, Value::Array(names)) => names.iter().try_for_each(|name| {
            write_bytes(2, string(name)?.as_bytes(), out);
            Ok(())
        }),
        (SchemaUnion::OrArray | SchemaUnion::OrStringArray, value) => nested(1, value, out),
    }
}

fn boolean(value: &Value) -> Result<bool, ProtoError> {
    match value {
        Value::Null => Ok(false),
        Value::Bool(value) => Ok(*value),
        other => Err(mismatch("a boolean", other)),
    }
}

fn integer(value: &Value) -> Result<i64, ProtoError> {
    match value {
        Value::Null => Ok(0),
        other => other.as_i64().ok_or_else(|| mismatch("an integer", other)),
    }
}

fn string(value: &Value) -> Result<&str, ProtoError> {
    match value {
        Value::Null => Ok(""),
        Value::String(text) => Ok(text),
        other => Err(mismatch("a string", other)),
    }
}

#[cold]
fn mismatch(expected: &str, found: &Value) -> ProtoError {
    ProtoError::new(format!("expected {expected}, found {}", found.type_name()))
}

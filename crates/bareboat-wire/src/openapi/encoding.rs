//! Encodes the members of a JSON document as members of a message; the tables are in `v2` and `v3`.

use crate::proto::ProtoError;
use crate::proto::raw::{Wire, write_bytes, write_nested, write_number, write_tag};
use crate::yaml;
use bareboat_api::Value;
use bareboat_api::value::MAX_DEPTH;

/// How a JSON member is encoded as a protobuf field.
#[derive(Clone, Copy)]
pub(super) enum MemberEncoding {
    /// A string.
    Text,
    /// A boolean.
    Flag,
    /// An integer.
    Whole,
    /// A float.
    Float,
    /// A list of strings, or a single string.
    Texts,
    /// Any value, as YAML text inside a message.
    Any,
    /// A list of any values.
    Anys,
    /// A boolean inside a oneof: written even when it is false.
    ChosenFlag,
    /// A float inside a oneof: written even when it is zero.
    ChosenFloat,
    /// A string inside a oneof: written even when it is empty.
    ChosenText,
    /// A message.
    One(&'static Node),
    /// A list of messages.
    Many(&'static Node),
}

/// A member of a message.
pub(super) struct Member {
    json: &'static str,
    number: u32,
    encoding: MemberEncoding,
}

/// Returns a member: its JSON name, field number and encoding.
pub(super) const fn member(json: &'static str, number: u32, encoding: MemberEncoding) -> Member {
    Member {
        json,
        number,
        encoding,
    }
}

/// How a JSON value is encoded as a message.
pub(super) enum Node {
    /// An object with known members; members that start with `x-` go to the second number.
    Object(&'static [Member], u32),
    /// A map, as a list of name-and-value messages.
    Map(&'static NamedMembers),
    /// A map of strings, as a list of name-and-string messages.
    TextMap(u32),
    /// A list, or one value alone, under that number.
    List(u32, MemberEncoding),
    /// One of several: which one follows from the value.
    Choice(fn(&Value) -> Option<(u32, MemberEncoding)>),
}

/// How the members of a map are encoded.
pub(super) struct NamedMembers {
    /// The field number of the members.
    pub(super) number: u32,
    /// How each member is encoded.
    pub(super) value: MemberEncoding,
    /// Where members that start with `x-` go, if they are not like the others.
    pub(super) extensions: Option<u32>,
    /// A member with its own number.
    pub(super) apart: Option<(&'static str, u32)>,
}

/// Encodes a whole document.
pub(super) fn encode(node: &Node, value: &Value) -> Result<Vec<u8>, ProtoError> {
    let mut out = Vec::with_capacity(4096);
    write_node(node, value, 0, &mut out)?;
    Ok(out)
}

/// Appends a message without its tag; values of another shape than in the table are left out.
fn write_node(
    node: &Node,
    value: &Value,
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), ProtoError> {
    // Every level of JSON takes up to three messages.
    if depth > 3 * MAX_DEPTH {
        return Err(ProtoError::new("the document is nested too deeply"));
    }
    match (node, value) {
        (Node::Object(members, extensions), Value::Object(map)) => {
            for Member {
                json,
                number,
                encoding,
            } in *members
            {
                if let Some(value) = map.get(json) {
                    write_member(*number, *encoding, value, depth, out)?;
                }
            }
            for (key, value) in map.iter().filter(|(key, _)| key.starts_with("x-")) {
                write_named(*extensions, key, MemberEncoding::Any, value, depth, out)?;
            }
            Ok(())
        }
        (Node::Map(members), Value::Object(map)) => {
            map.iter()
                .try_for_each(|(key, value)| match (members.extensions, members.apart) {
                    (Some(number), _) if key.starts_with("x-") => {
                        write_named(number, key, MemberEncoding::Any, value, depth, out)
                    }
                    (_, Some((name, number))) if key == name => {
                        write_member(number, members.value, value, depth, out)
                    }
                    _ => write_named(members.number, key, members.value, value, depth, out),
                })
        }
        (Node::TextMap(number), Value::Object(map)) => map.iter().try_for_each(|(key, value)| {
            write_named(*number, key, MemberEncoding::Text, value, depth, out)
        }),
        (Node::List(number, encoding), Value::Array(items)) => items
            .iter()
            .try_for_each(|item| write_member(*number, *encoding, item, depth, out)),
        (Node::List(number, encoding), value) => {
            write_member(*number, *encoding, value, depth, out)
        }
        (Node::Choice(choose), value) => match choose(value) {
            Some((number, encoding)) => write_member(number, encoding, value, depth, out),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Appends a member of a map: a message of its name and its value.
fn write_named(
    number: u32,
    name: &str,
    encoding: MemberEncoding,
    value: &Value,
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), ProtoError> {
    write_nested(number, out, |out| {
        write_bytes(1, name.as_bytes(), out);
        write_member(2, encoding, value, depth, out)
    })
}

/// Appends a member; as in proto3, zero values are left out.
fn write_member(
    number: u32,
    encoding: MemberEncoding,
    value: &Value,
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), ProtoError> {
    match (encoding, value) {
        (MemberEncoding::Text, Value::String(text)) if !text.is_empty() => {
            write_bytes(number, text.as_bytes(), out);
        }
        (MemberEncoding::Flag, Value::Bool(true)) => write_number(number, 1, out),
        (MemberEncoding::Whole, value) => {
            if let Some(whole) = value.as_i64().filter(|whole| *whole != 0) {
                write_number(number, whole as u64, out);
            }
        }
        (MemberEncoding::Float, value) => {
            if let Some(float) = value.as_f64().filter(|float| *float != 0.0) {
                write_tag(number, Wire::Fixed64, out);
                out.extend_from_slice(&float.to_bits().to_le_bytes());
            }
        }
        (MemberEncoding::ChosenFlag, Value::Bool(flag)) => {
            write_number(number, u64::from(*flag), out)
        }
        (MemberEncoding::ChosenFloat, value) => {
            write_tag(number, Wire::Fixed64, out);
            let float = value.as_f64().unwrap_or(0.0);
            out.extend_from_slice(&float.to_bits().to_le_bytes());
        }
        (MemberEncoding::ChosenText, Value::String(text)) => {
            write_bytes(number, text.as_bytes(), out)
        }
        (MemberEncoding::Texts, Value::String(text)) => write_bytes(number, text.as_bytes(), out),
        (MemberEncoding::Texts, Value::Array(items)) => {
            for text in items.iter().filter_map(Value::as_str) {
                write_bytes(number, text.as_bytes(), out);
            }
        }
        (MemberEncoding::Any, value) => {
            return write_nested(number, out, |out| {
                write_bytes(2, &yaml::print(value), out);
                Ok(())
            });
        }
        (MemberEncoding::Anys, Value::Array(items)) => {
            return items
                .iter()
                .try_for_each(|item| write_member(number, MemberEncoding::Any, item, depth, out));
        }
        (MemberEncoding::One(node), value) => {
            return write_nested(number, out, |out| write_node(node, value, depth + 1, out));
        }
        (MemberEncoding::Many(node), Value::Array(items)) => {
            return items.iter().try_for_each(|item| {
                write_nested(number, out, |out| write_node(node, item, depth + 1, out))
            });
        }
        _ => {}
    }
    Ok(())
}

//! Brings a decoded JSON body into the form its built-in type gives it, in place.
//!
//! What a round trip through a Go struct would do: members the type does not declare are reported
//! and dropped, `null` and empty members vanish unless the type prints them, missing members that
//! are always printed appear, and quantities, times and durations get their canonical text.
//! Defaults and validation are not its business.

mod scalar;
mod zero;

use bareboat_api::facts::{Cardinality, Field, Message, MessageRef, SchemaUnion, Type};
use bareboat_api::{Map, Value};
use std::fmt;

/// Why a body does not fit its type: which field, and what was expected there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeError {
    /// The field, such as `spec.containers[0].image`; empty for the object itself.
    pub path: String,
    /// What was expected, such as `a string`.
    pub expected: &'static str,
    /// What was found instead.
    pub found: String,
}

impl fmt::Display for TypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        write!(f, "expected {}, found {}", self.expected, self.found)
    }
}

impl std::error::Error for TypeError {}

/// What to do with empty lists and maps that the type prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Empties {
    /// They become `null`, as for kinds that upstream stores as protobuf.
    Null,
    /// They stay, as for kinds that upstream stores as JSON (CRDs, APIServices).
    Keep,
}

/// Brings `object` into the form of `message`; texts such as `unknown field "spec.foo"` go to
/// `findings`.
pub fn conform(
    message: &Message,
    object: &mut Value,
    empties: Empties,
    findings: &mut Vec<String>,
) -> Result<(), TypeError> {
    let mut walk = Walk {
        empties,
        findings,
        room: MAX_FINDINGS,
    };
    walk.message(message, object, &Place::Root)
}

/// Where in the object the walk is; printed only when there is something to say.
enum Place<'a> {
    Root,
    Member(&'a Place<'a>, &'a str),
    Element(&'a Place<'a>, usize),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Root => Ok(()),
            Place::Member(Place::Root, name) => f.write_str(name),
            Place::Member(parent, name) => write!(f, "{parent}.{name}"),
            Place::Element(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// How many bytes of findings one body may cause; the rest would not help anybody.
const MAX_FINDINGS: usize = 64 * 1024;

struct Walk<'a> {
    empties: Empties,
    findings: &'a mut Vec<String>,
    /// How many bytes of findings may still come.
    room: usize,
}

impl Walk<'_> {
    /// A struct: checks its members and completes those that are always printed.
    fn message(
        &mut self,
        message: &Message,
        value: &mut Value,
        place: &Place<'_>,
    ) -> Result<(), TypeError> {
        if value.is_null() {
            *value = Value::object();
        }
        let Value::Object(map) = value else {
            return Err(mismatch(place, "an object", value));
        };
        let mut failed = None;
        map.retain(|name, value| {
            if failed.is_some() {
                return true;
            }
            let here = Place::Member(place, name);
            let Some(field) = message.field(name).filter(|_| !name.is_empty()) else {
                self.unknown(&here);
                return false;
            };
            match self.field(field, value, &here) {
                Ok(keep) => keep,
                Err(error) => {
                    failed = Some(error);
                    true
                }
            }
        });
        match failed {
            Some(error) => Err(error),
            None => {
                zero::complete(message, map);
                Ok(())
            }
        }
    }

    fn unknown(&mut self, place: &Place<'_>) {
        if self.room == 0 {
            return;
        }
        let text = format!("unknown field \"{place}\"");
        self.room = self.room.saturating_sub(text.len());
        self.findings.push(text);
    }

    /// One member; says whether it stays.
    fn field(
        &mut self,
        field: &Field,
        value: &mut Value,
        place: &Place<'_>,
    ) -> Result<bool, TypeError> {
        match field.cardinality {
            Cardinality::One if value.is_null() => {
                *value = zero::of(field);
                Ok(!field.omit_empty)
            }
            Cardinality::One => {
                self.one(field.ty, value, place)?;
                Ok(!field.omit_empty || field.optional || !zero::is_empty(value))
            }
            Cardinality::List => {
                self.list(field.ty, value, place)?;
                Ok(self.keep_collection(field, value))
            }
            Cardinality::Map => {
                self.map(field.ty, value, place)?;
                Ok(self.keep_collection(field, value))
            }
        }
    }

    fn keep_collection(&self, field: &Field, value: &mut Value) -> bool {
        let empty = zero::is_empty(value);
        if empty && self.empties == Empties::Null {
            *value = Value::Null;
        }
        !empty || !field.omit_empty
    }

    fn list(&mut self, ty: Type, value: &mut Value, place: &Place<'_>) -> Result<(), TypeError> {
        if value.is_null() {
            return Ok(());
        }
        let Value::Array(items) = value else {
            return Err(mismatch(place, "a list", value));
        };
        for (index, item) in items.iter_mut().enumerate() {
            self.element(ty, item, &Place::Element(place, index))?;
        }
        Ok(())
    }

    fn map(&mut self, ty: Type, value: &mut Value, place: &Place<'_>) -> Result<(), TypeError> {
        if value.is_null() {
            return Ok(());
        }
        let Value::Object(members) = value else {
            return Err(mismatch(place, "an object", value));
        };
        for (name, member) in members.iter_mut() {
            self.element(ty, member, &Place::Member(place, name))?;
        }
        Ok(())
    }

    /// An element of a list or map, where `null` is the zero value.
    fn element(&mut self, ty: Type, value: &mut Value, place: &Place<'_>) -> Result<(), TypeError> {
        if value.is_null() {
            *value = zero::element(ty);
            return Ok(());
        }
        self.one(ty, value, place)
    }

    fn one(&mut self, ty: Type, value: &mut Value, place: &Place<'_>) -> Result<(), TypeError> {
        match ty {
            Type::Message(message) => self.message(message.get(), value, place),
            Type::SchemaUnion(union, schema) => self.union(union, schema, value, place),
            Type::Strings => self.list(Type::String, value, place),
            Type::Json | Type::RawExtension => Ok(()),
            Type::FieldsV1 => match value {
                Value::Object(_) => Ok(()),
                other => Err(mismatch(place, "an object", other)),
            },
            _ => scalar::conform(ty, value).map_err(|expected| mismatch(place, expected, value)),
        }
    }

    fn union(
        &mut self,
        union: SchemaUnion,
        schema: MessageRef,
        value: &mut Value,
        place: &Place<'_>,
    ) -> Result<(), TypeError> {
        // Upstream reads what is below by itself and not strictly: unknown members go without a word.
        let room = std::mem::take(&mut self.room);
        let read = match (union, &mut *value) {
            (_, Value::Object(_)) => self.message(schema.get(), value, place),
            (SchemaUnion::OrArray, Value::Array(_)) => {
                self.list(Type::Message(schema), value, place)
            }
            (SchemaUnion::OrStringArray, Value::Array(_)) => self.list(Type::String, value, place),
            (SchemaUnion::OrBool, Value::Bool(_)) => Ok(()),
            (SchemaUnion::OrBool, other) => Err(mismatch(place, "a schema or a boolean", other)),
            (_, other) => Err(mismatch(place, "a schema or a list", other)),
        };
        self.room = room;
        read
    }
}

fn mismatch(place: &Place<'_>, expected: &'static str, found: &Value) -> TypeError {
    let found = match found {
        Value::String(text) if text.len() <= 64 => format!("the string {text:?}"),
        Value::Int(_) | Value::Float(_) | Value::Bool(_) => {
            format!("the {} {found}", found.type_name())
        }
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::Null => "null".to_owned(),
        Value::String(_) => "a long string".to_owned(),
    };
    TypeError {
        path: place.to_string(),
        expected,
        found,
    }
}

/// A struct of that message in which nothing is set.
pub fn empty(message: &Message) -> Map {
    let mut map = Map::new();
    zero::complete(message, &mut map);
    map
}

#[cfg(test)]
mod tests;

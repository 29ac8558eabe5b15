//! Normalizes a decoded JSON body to its built-in type, in place.
//!
//! It has the effect of a round trip through a Go struct. Undeclared members are reported and dropped. `null` and empty
//! members are removed unless the type prints them. Missing members that are always printed are added. Quantities,
//! times and durations get their canonical text. Defaults and validation are elsewhere.

mod scalar;
mod zero;

use bareboat_api::facts::{Cardinality, Field, Message, MessageRef, SchemaUnion, Type};
use bareboat_api::{Map, Value};
use std::fmt;

/// A type mismatch: the field, and the expected type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeError {
    /// The field, such as `spec.containers[0].image`; empty for the object itself.
    pub path: String,
    /// The expected type, such as `a string`.
    pub expected: &'static str,
    /// The value found.
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

/// How to treat empty lists and maps that the type prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Empties {
    /// Changes them to `null`, as for kinds that upstream stores as protobuf.
    Null,
    /// Keeps them, as for kinds that upstream stores as JSON (CRDs, APIServices).
    Keep,
}

/// Normalizes `object` to the type `message`; texts such as `unknown field "spec.foo"` are added to `findings`.
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
    walk.message(message, object, &MemberPath::Root)
}

/// The current path in the object; formatted only for a finding.
enum MemberPath<'a> {
    Root,
    Member(&'a MemberPath<'a>, &'a str),
    Element(&'a MemberPath<'a>, usize),
}

impl fmt::Display for MemberPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemberPath::Root => Ok(()),
            MemberPath::Member(MemberPath::Root, name) => f.write_str(name),
            MemberPath::Member(parent, name) => write!(f, "{parent}.{name}"),
            MemberPath::Element(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// Maximum size of all findings of one body, in bytes.
const MAX_FINDINGS: usize = 64 * 1024;

struct Walk<'a> {
    empties: Empties,
    findings: &'a mut Vec<String>,
    /// Remaining size for findings, in bytes.
    room: usize,
}

impl Walk<'_> {
    /// Normalizes the members of a struct and adds those that are always printed.
    fn message(
        &mut self,
        message: &Message,
        value: &mut Value,
        path: &MemberPath<'_>,
    ) -> Result<(), TypeError> {
        if value.is_null() {
            *value = Value::object();
        }
        let Value::Object(map) = value else {
            return Err(mismatch(path, "an object", value));
        };
        let mut failed = None;
        map.retain(|name, value| {
            if failed.is_some() {
                return true;
            }
            let here = MemberPath::Member(path, name);
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

    fn unknown(&mut self, path: &MemberPath<'_>) {
        if self.room == 0 {
            return;
        }
        let text = format!("unknown field \"{path}\"");
        self.room = self.room.saturating_sub(text.len());
        self.findings.push(text);
    }

    /// Normalizes one member; returns whether to keep it.
    fn field(
        &mut self,
        field: &Field,
        value: &mut Value,
        path: &MemberPath<'_>,
    ) -> Result<bool, TypeError> {
        match field.cardinality {
            Cardinality::One if value.is_null() => {
                *value = zero::of(field);
                Ok(!field.omit_empty)
            }
            Cardinality::One => {
                self.one(field.ty, value, path)?;
                Ok(!field.omit_empty || field.optional || !zero::is_empty(value))
            }
            Cardinality::List => {
                self.list(field.ty, value, path)?;
                Ok(self.keep_collection(field, value))
            }
            Cardinality::Map => {
                self.map(field.ty, value, path)?;
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

    fn list(
        &mut self,
        ty: Type,
        value: &mut Value,
        path: &MemberPath<'_>,
    ) -> Result<(), TypeError> {
        if value.is_null() {
            return Ok(());
        }
        let Value::Array(items) = value else {
            return Err(mismatch(path, "a list", value));
        };
        for (index, item) in items.iter_mut().enumerate() {
            self.element(ty, item, &MemberPath::Element(path, index))?;
        }
        Ok(())
    }

    fn map(&mut self, ty: Type, value: &mut Value, path: &MemberPath<'_>) -> Result<(), TypeError> {
        if value.is_null() {
            return Ok(());
        }
        let Value::Object(members) = value else {
            return Err(mismatch(path, "an object", value));
        };
        for (name, member) in members.iter_mut() {
            self.element(ty, member, &MemberPath::Member(path, name))?;
        }
        Ok(())
    }

    /// Normalizes an element of a list or map, where `null` is the zero value.
    fn element(
        &mut self,
        ty: Type,
        value: &mut Value,
        path: &MemberPath<'_>,
    ) -> Result<(), TypeError> {
        if value.is_null() {
            *value = zero::element(ty);
            return Ok(());
        }
        self.one(ty, value, path)
    }

    fn one(&mut self, ty: Type, value: &mut Value, path: &MemberPath<'_>) -> Result<(), TypeError> {
        match ty {
            Type::Message(message) => self.message(message.get(), value, path),
            Type::SchemaUnion(union, schema) => self.union(union, schema, value, path),
            Type::Strings => self.list(Type::String, value, path),
            Type::Json | Type::RawExtension => Ok(()),
            Type::FieldsV1 => match value {
                Value::Object(_) => Ok(()),
                other => Err(mismatch(path, "an object", other)),
            },
            _ => scalar::conform(ty, value).map_err(|expected| mismatch(path, expected, value)),
        }
    }

    fn union(
        &mut self,
        union: SchemaUnion,
        schema: MessageRef,
        value: &mut Value,
        path: &MemberPath<'_>,
    ) -> Result<(), TypeError> {
        // Upstream decodes schemas separately and not strictly: unknown members are dropped silently.
        let room = std::mem::take(&mut self.room);
        let read = match (union, &mut *value) {
            (_, Value::Object(_)) => self.message(schema.get(), value, path),
            (SchemaUnion::OrArray, Value::Array(_)) => {
                self.list(Type::Message(schema), value, path)
            }
            (SchemaUnion::OrStringArray, Value::Array(_)) => self.list(Type::String, value, path),
            (SchemaUnion::OrBool, Value::Bool(_)) => Ok(()),
            (SchemaUnion::OrBool, other) => Err(mismatch(path, "a schema or a boolean", other)),
            (_, other) => Err(mismatch(path, "a schema or a list", other)),
        };
        self.room = room;
        read
    }
}

fn mismatch(path: &MemberPath<'_>, expected: &'static str, found: &Value) -> TypeError {
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
        path: path.to_string(),
        expected,
        found,
    }
}

/// Returns an empty struct of a message.
pub fn empty(message: &Message) -> Map {
    let mut map = Map::new();
    zero::complete(message, &mut map);
    map
}

#[cfg(test)]
mod tests;

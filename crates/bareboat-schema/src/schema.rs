//! The compiled form of a structural schema.
//!
//! Descriptions and examples are not kept: OpenAPI documents use the definition's own text.

mod cache;
mod parse;
mod typing;

pub use cache::SchemaCache;

use crate::format::Format;
use crate::rules::Pattern;
use bareboat_api::Value;
use bareboat_api::typing::{ListKey, ListType};
use std::cmp::Ordering;
use std::sync::Arc;

/// The error of a schema that cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// The schema is nested deeper than any object may be.
    #[error("schema is nested too deeply")]
    TooDeep,
    /// The schema is not a JSON object.
    #[error("schema must be an object")]
    NotAnObject,
    /// The schema has something that needs the feature `expressions`.
    #[error("schema has {0}, which needs the feature `expressions` of bareboat")]
    NeedsExpressions(&'static str),
}

/// The structural schema of one version of a kind; cheap to clone.
#[derive(Clone, Debug)]
pub struct Schema {
    pub(crate) root: Arc<Node>,
}

impl Schema {
    /// Compiles an `openAPIV3Schema`; equal sub-schemas are stored once.
    pub fn parse(schema: &Value) -> Result<Schema, SchemaError> {
        SchemaCache::new().parse(schema)
    }

    /// Returns a hash of everything that affects normalising and validating objects; descriptions
    /// do not count.
    pub fn hash(&self) -> u128 {
        self.root.id
    }

    /// Returns whether any node has `x-kubernetes-validations`.
    pub fn has_rules(&self) -> bool {
        self.root.has(Flags::RULES_BELOW)
    }
}

/// The JSON type of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Any type.
    Any,
    /// An object.
    Object,
    /// An array.
    Array,
    /// A string.
    String,
    /// An integer.
    Integer,
    /// A number.
    Number,
    /// A boolean.
    Boolean,
}

impl Kind {
    /// Returns the kind of that name; unknown names count as any.
    pub(crate) fn named(name: &str) -> Kind {
        match name {
            "object" => Kind::Object,
            "array" => Kind::Array,
            "string" => Kind::String,
            "integer" => Kind::Integer,
            "number" => Kind::Number,
            "boolean" => Kind::Boolean,
            _ => Kind::Any,
        }
    }

    /// Returns the name in schemas; empty for any.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Any => "",
            Kind::Object => "object",
            Kind::Array => "array",
            Kind::String => "string",
            Kind::Integer => "integer",
            Kind::Number => "number",
            Kind::Boolean => "boolean",
        }
    }
}

/// Boolean facts about a node. Those ending in `BELOW` are about the node and everything under it,
/// so that code can skip branches without work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags(u16);

impl Flags {
    pub(crate) const NULLABLE: Flags = Flags(1);
    pub(crate) const PRESERVE: Flags = Flags(1 << 1);
    pub(crate) const EMBEDDED: Flags = Flags(1 << 2);
    pub(crate) const INT_OR_STRING: Flags = Flags(1 << 3);
    pub(crate) const ATOMIC_MAP: Flags = Flags(1 << 4);
    pub(crate) const DEFAULTS_BELOW: Flags = Flags(1 << 5);
    pub(crate) const UNIQUE_BELOW: Flags = Flags(1 << 6);
    pub(crate) const EMBEDDED_BELOW: Flags = Flags(1 << 7);
    pub(crate) const RULES_BELOW: Flags = Flags(1 << 8);
    const BELOW: Flags = Flags(0b1_1110_0000);

    pub(crate) fn set(&mut self, flag: Flags, on: bool) {
        if on {
            self.0 |= flag.0;
        }
    }

    pub(crate) fn inherit(&mut self, child: Flags) {
        self.0 |= child.0 & Flags::BELOW.0;
    }
}

/// The content of `additionalProperties`.
#[derive(Clone, Debug, Default)]
pub(crate) enum Additional {
    /// Absent: undeclared members are unknown.
    #[default]
    Absent,
    /// `true` or `false`.
    Allowed(bool),
    /// A schema for every member.
    Node(Arc<Node>),
}

/// Finds declared members for the members of a map in order: the next member is mostly the next
/// declared one.
pub(crate) struct InOrder<'n> {
    rest: &'n [(Box<str>, Arc<Node>)],
}

/// How many declared members are compared before the rest is searched.
const NEAR: usize = 4;

impl<'n> InOrder<'n> {
    /// Returns the declared member of that name, which must come after all earlier names.
    pub(crate) fn property(&mut self, name: &str) -> Option<&'n Node> {
        // Objects leave out some members, seldom many in a row.
        for (index, (key, node)) in self.rest.iter().take(NEAR).enumerate() {
            match (**key).cmp(name) {
                Ordering::Less => {}
                Ordering::Equal => {
                    self.rest = &self.rest[index + 1..];
                    return Some(node);
                }
                Ordering::Greater => {
                    self.rest = &self.rest[index..];
                    return None;
                }
            }
        }
        self.rest = self.rest.get(NEAR..)?;
        match self.rest.binary_search_by(|(key, _)| (**key).cmp(name)) {
            Ok(index) => {
                let found = &self.rest[index].1;
                self.rest = &self.rest[index + 1..];
                Some(found)
            }
            Err(index) => {
                self.rest = &self.rest[index..];
                None
            }
        }
    }
}

/// A default, and the approximate memory of a copy.
#[derive(Debug)]
pub(crate) struct DefaultValue {
    pub(crate) value: Value,
    pub(crate) bytes: usize,
}

/// One schema in the tree, also used for the value validations under `anyOf` and the like.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) id: u128,
    /// The number of schemas of values in this subtree, counted with repetitions.
    pub(crate) size: u32,
    pub(crate) kind: Kind,
    pub(crate) flags: Flags,
    pub(crate) list: Option<ListType>,
    pub(crate) properties: Box<[(Box<str>, Arc<Node>)]>,
    pub(crate) additional: Additional,
    pub(crate) items: Option<Arc<Node>>,
    pub(crate) default: Option<Box<DefaultValue>>,
    pub(crate) keys: Box<[ListKey]>,
    pub(crate) checks: Option<Box<Checks>>,
    pub(crate) rules: Option<Box<crate::rules::Rules>>,
}

impl Node {
    pub(crate) fn has(&self, flag: Flags) -> bool {
        self.flags.0 & flag.0 != 0
    }

    /// Returns the declared member of that name.
    pub(crate) fn property(&self, name: &str) -> Option<&Node> {
        self.property_arc(name).map(|node| &**node)
    }

    pub(crate) fn property_arc(&self, name: &str) -> Option<&Arc<Node>> {
        self.properties
            .binary_search_by(|(key, _)| (**key).cmp(name))
            .ok()
            .map(|index| &self.properties[index].1)
    }

    /// Returns a lookup of declared members for names in order, as maps have them.
    pub(crate) fn in_order(&self) -> InOrder<'_> {
        InOrder {
            rest: &self.properties,
        }
    }

    /// Returns the schema of undeclared members, if there is one.
    pub(crate) fn additional(&self) -> Option<&Node> {
        match &self.additional {
            Additional::Node(node) => Some(node),
            _ => None,
        }
    }

    /// Returns the schema of a member: the declared one, else that of additional members.
    pub(crate) fn member(&self, name: &str) -> Option<&Node> {
        self.property(name).or_else(|| self.additional())
    }

    /// Returns the types that a value may have, as messages list them.
    pub(crate) fn type_text(&self) -> &'static str {
        if self.has(Flags::INT_OR_STRING) {
            "integer,string"
        } else {
            self.kind.name()
        }
    }
}

/// The value validations of a node.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    pub(crate) format: Option<(Format, Box<str>)>,
    pub(crate) maximum: Option<f64>,
    pub(crate) minimum: Option<f64>,
    pub(crate) exclusive_maximum: bool,
    pub(crate) exclusive_minimum: bool,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) max_length: Option<i64>,
    pub(crate) min_length: Option<i64>,
    pub(crate) max_items: Option<i64>,
    pub(crate) min_items: Option<i64>,
    pub(crate) max_properties: Option<i64>,
    pub(crate) min_properties: Option<i64>,
    pub(crate) pattern: Option<Arc<Pattern>>,
    pub(crate) choices: Box<[Value]>,
    /// The enum values as sorted JSON texts, if there are too many for a linear search.
    pub(crate) choice_texts: Box<[Vec<u8>]>,
    pub(crate) required: Box<[Box<str>]>,
    /// Indexes into `required`, sorted by name.
    pub(crate) required_order: Box<[u32]>,
    pub(crate) all_of: Box<[Arc<Node>]>,
    pub(crate) any_of: Box<[Arc<Node>]>,
    pub(crate) one_of: Box<[Arc<Node>]>,
    pub(crate) not: Option<Arc<Node>>,
}

/// The maximum number of enum values for a linear search.
const FEW_CHOICES: usize = 32;

impl Checks {
    /// Returns the enum values as sorted JSON texts, if there are many.
    fn texts_of(choices: &[Value]) -> Box<[Vec<u8>]> {
        if choices.len() <= FEW_CHOICES {
            return Box::default();
        }
        let mut texts: Box<[Vec<u8>]> = choices.iter().map(Value::to_json).collect();
        bareboat_api::sort_by(&mut texts, Ord::cmp);
        texts
    }

    /// Returns whether a value is among the enum values.
    pub(crate) fn offers(&self, value: &Value) -> bool {
        match self.choice_texts.is_empty() {
            true => self.choices.contains(value),
            false => self.choice_texts.binary_search(&value.to_json()).is_ok(),
        }
    }

    /// Returns whether a member is required.
    pub(crate) fn requires(&self, name: &str) -> bool {
        let named = |at: &u32| (*self.required[*at as usize]).cmp(name);
        self.required_order.binary_search_by(named).is_ok()
    }
}

#[cfg(test)]
mod tests;

//! The compiled form of a structural schema.
//!
//! Descriptions and examples are not kept: publishing works from the definition's own text.

mod cache;
mod parse;
mod typing;

pub use cache::SchemaCache;

use crate::format::Format;
use bareboat_api::Value;
use bareboat_api::typing::{ListKey, ListType};
use bareboat_cel::GoPattern;
use std::sync::Arc;

/// Why a schema could not be compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// Schemas are nested deeper than any object may be.
    #[error("schema is nested too deeply")]
    TooDeep,
    /// The schema is not a JSON object.
    #[error("schema must be an object")]
    NotAnObject,
}

/// The structural schema of one version of a kind, ready for use and cheap to clone.
#[derive(Clone, Debug)]
pub struct Schema {
    pub(crate) root: Arc<Node>,
}

impl Schema {
    /// Compiles an `openAPIV3Schema`; sub-schemas that occur more than once are kept once.
    pub fn parse(schema: &Value) -> Result<Schema, SchemaError> {
        SchemaCache::new().parse(schema)
    }

    /// A hash of everything that influences how objects are shaped and judged; texts meant for
    /// people do not count.
    pub fn hash(&self) -> u128 {
        self.root.id
    }

    /// Whether any node carries `x-kubernetes-validations`.
    pub fn has_rules(&self) -> bool {
        self.root.has(Flags::RULES_BELOW)
    }

    /// The type of what a path of declared members leads to, such as `["spec", "replicas"]`;
    /// nothing when it leaves what the schema declares.
    pub fn kind_at<'p>(&self, path: impl IntoIterator<Item = &'p str>) -> Option<Kind> {
        let mut node = &*self.root;
        for name in path {
            node = node.property(name)?;
        }
        Some(node.kind)
    }
}

/// The JSON type a schema asks for.
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
    /// The kind of that name; names that are no type count as any.
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

    /// The name the schema uses; empty for any.
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

/// Yes-or-no facts of a node; those ending in `BELOW` speak of the node and everything under it,
/// so that walks can leave out branches where there is nothing to do.
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

/// What `additionalProperties` says.
#[derive(Clone, Debug, Default)]
pub(crate) enum Additional {
    /// Nothing: members that are not declared are unknown.
    #[default]
    Absent,
    /// `true` or `false`.
    Allowed(bool),
    /// Every member follows this schema.
    Node(Arc<Node>),
}

/// Declared members, walked along with the members of a map: the next one asked for is mostly the next declared.
pub(crate) struct InOrder<'n> {
    rest: &'n [(Box<str>, Arc<Node>)],
}

impl<'n> InOrder<'n> {
    /// The declared member of a name that comes after all names asked for before.
    pub(crate) fn property(&mut self, name: &str) -> Option<&'n Node> {
        let (first, after) = self.rest.split_first()?;
        if *first.0 == *name {
            self.rest = after;
            return Some(&first.1);
        }
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

/// A default, and roughly the memory a copy of it takes.
#[derive(Debug)]
pub(crate) struct DefaultValue {
    pub(crate) value: Value,
    pub(crate) bytes: usize,
}

/// One schema in the tree, also used for the value validations under `anyOf` and the like.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) id: u128,
    /// How many schemas of values there are from here down, each counted where it stands.
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

    /// The declared member of that name.
    pub(crate) fn property(&self, name: &str) -> Option<&Node> {
        self.property_arc(name).map(|node| &**node)
    }

    pub(crate) fn property_arc(&self, name: &str) -> Option<&Arc<Node>> {
        self.properties
            .binary_search_by(|(key, _)| (**key).cmp(name))
            .ok()
            .map(|index| &self.properties[index].1)
    }

    /// Finds declared members whose names are asked for in their order, as maps have them.
    pub(crate) fn in_order(&self) -> InOrder<'_> {
        InOrder {
            rest: &self.properties,
        }
    }

    /// The schema of every member that is not declared, if there is one.
    pub(crate) fn additional(&self) -> Option<&Node> {
        match &self.additional {
            Additional::Node(node) => Some(node),
            _ => None,
        }
    }

    /// The schema that governs a member: the declared one, else that of additional members.
    pub(crate) fn member(&self, name: &str) -> Option<&Node> {
        self.property(name).or_else(|| self.additional())
    }

    /// The types a value may have, as messages list them.
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
    pub(crate) pattern: Option<Arc<GoPattern>>,
    pub(crate) choices: Box<[Value]>,
    /// The choices as text and in order, if there are too many to look through.
    pub(crate) choice_texts: Box<[Vec<u8>]>,
    pub(crate) required: Box<[Box<str>]>,
    /// The places in `required`, in the order of the names.
    pub(crate) required_order: Box<[u32]>,
    pub(crate) all_of: Box<[Arc<Node>]>,
    pub(crate) any_of: Box<[Arc<Node>]>,
    pub(crate) one_of: Box<[Arc<Node>]>,
    pub(crate) not: Option<Arc<Node>>,
}

/// More choices than that are not looked through one by one.
const FEW_CHOICES: usize = 32;

impl Checks {
    /// The choices as text and in order, if there are many.
    fn texts_of(choices: &[Value]) -> Box<[Vec<u8>]> {
        if choices.len() <= FEW_CHOICES {
            return Box::default();
        }
        let mut texts: Box<[Vec<u8>]> = choices.iter().map(Value::to_json).collect();
        texts.sort_unstable();
        texts
    }

    /// Whether a value is among the choices.
    pub(crate) fn offers(&self, value: &Value) -> bool {
        match self.choice_texts.is_empty() {
            true => self.choices.contains(value),
            false => self.choice_texts.binary_search(&value.to_json()).is_ok(),
        }
    }

    /// Whether a member must be there.
    pub(crate) fn requires(&self, name: &str) -> bool {
        let named = |at: &u32| (*self.required[*at as usize]).cmp(name);
        self.required_order.binary_search_by(named).is_ok()
    }
}

#[cfg(test)]
mod tests;

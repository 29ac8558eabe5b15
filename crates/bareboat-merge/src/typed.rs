//! Typed operations on objects: their fields, differences, merging.
//!
//! Everything is driven by [`TypeNode`]. Recursion follows the values, whose depth their parser has
//! bounded. [`crate::apply`] keeps track of the owners of fields.

mod compare;
mod items;
mod merge;
mod remove;
mod to_set;
mod validate;

pub use compare::{Changes, changes};
pub(crate) use compare::{UNTRACKED, UNTRACKED_META};
pub use merge::merge;
pub(crate) use remove::{hollow_fields, settle_along};
pub use remove::{name_owned_structs, remove_fields, settle_with_type};
pub use to_set::to_set;
pub use validate::{TypeError, validate};

use bareboat_api::{
    Value,
    typing::{ListType, NodeType, TypeNode},
};

/// The type of a place without type information: maps merge, lists are atomic.
struct Untyped;

impl TypeNode for Untyped {
    fn node_type(&self) -> NodeType {
        NodeType::Untyped
    }
    fn field(&self, _: &str) -> Option<&dyn TypeNode> {
        Some(&Untyped)
    }
    fn items(&self) -> Option<&dyn TypeNode> {
        Some(&Untyped)
    }
}

/// How a value is merged.
#[derive(Clone, Copy, PartialEq, Debug)]
enum MergeRule {
    /// The whole value is replaced.
    Leaf,
    /// Objects are merged member by member.
    Members,
    /// Element by element; elements are identified by their value.
    Set,
    /// Element by element; elements are identified by their keys.
    Keyed,
}

/// The shape of a value; nothing where the type leaves it open and the value is null or absent.
fn rule(node: &dyn TypeNode, value: Option<&Value>) -> Option<MergeRule> {
    match node.node_type() {
        NodeType::Scalar => Some(MergeRule::Leaf),
        NodeType::Struct | NodeType::Map | NodeType::Untyped if node.is_atomic() => {
            Some(MergeRule::Leaf)
        }
        NodeType::Struct | NodeType::Map => Some(MergeRule::Members),
        NodeType::List(ListType::Atomic) => Some(MergeRule::Leaf),
        NodeType::List(ListType::Set) => Some(MergeRule::Set),
        NodeType::List(ListType::Map) => Some(MergeRule::Keyed),
        NodeType::Untyped if node.is_atomic() => Some(MergeRule::Leaf),
        NodeType::Untyped => match value {
            None | Some(Value::Null) => None,
            Some(Value::Object(_)) => Some(MergeRule::Members),
            Some(_) => Some(MergeRule::Leaf),
        },
    }
}

/// The type of a member.
struct Member<'a> {
    node: &'a dyn TypeNode,
    /// Whether this is a declared member of a struct, not an entry of a map.
    named: bool,
}

/// Returns the type of the member of a struct or map; unknown members are untyped.
fn member<'a>(node: &'a dyn TypeNode, name: &str) -> Member<'a> {
    let declared = node.field(name);
    Member {
        named: declared.is_some() && node.node_type() == NodeType::Struct,
        node: declared.unwrap_or(&Untyped),
    }
}

/// Returns the type of a list's elements.
fn element(node: &dyn TypeNode) -> &dyn TypeNode {
    node.items().unwrap_or(&Untyped)
}

#[cfg(test)]
pub(crate) mod tests;

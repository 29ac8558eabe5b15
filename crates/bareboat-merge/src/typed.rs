//! Objects seen through their type: which fields they have, how two differ, how one merges into another.
//!
//! Everything is driven by [`TypeNode`]. Recursion follows the values, whose depth their parser has
//! bounded. Who owns which field is left to [`crate::apply`].

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
    typing::{Form, ListType, TypeNode},
};

/// The type of a place nothing is known of: maps merge, lists are atomic.
struct Untyped;

impl TypeNode for Untyped {
    fn form(&self) -> Form {
        Form::Untyped
    }
    fn field(&self, _: &str) -> Option<&dyn TypeNode> {
        Some(&Untyped)
    }
    fn items(&self) -> Option<&dyn TypeNode> {
        Some(&Untyped)
    }
}

/// How the value at a place takes part in merging.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Shape {
    /// As one value.
    Leaf,
    /// Member by member.
    Members,
    /// Element by element; the elements are their own identity.
    Set,
    /// Element by element, told apart by their keys.
    Keyed,
}

/// The shape of a value; nothing where the type leaves it open and the value is null or absent.
fn shape(node: &dyn TypeNode, value: Option<&Value>) -> Option<Shape> {
    match node.form() {
        Form::Scalar => Some(Shape::Leaf),
        Form::Struct | Form::Map | Form::Untyped if node.is_atomic() => Some(Shape::Leaf),
        Form::Struct | Form::Map => Some(Shape::Members),
        Form::List(ListType::Atomic) => Some(Shape::Leaf),
        Form::List(ListType::Set) => Some(Shape::Set),
        Form::List(ListType::Map) => Some(Shape::Keyed),
        Form::Untyped if node.is_atomic() => Some(Shape::Leaf),
        Form::Untyped => match value {
            None | Some(Value::Null) => None,
            Some(Value::Object(_)) => Some(Shape::Members),
            Some(_) => Some(Shape::Leaf),
        },
    }
}

/// The type of a member.
struct Member<'a> {
    node: &'a dyn TypeNode,
    /// A member of a struct that its type names, as opposed to an entry of a map.
    named: bool,
}

/// The type of the member of a struct or map; places nothing is known of are untyped.
fn member<'a>(node: &'a dyn TypeNode, name: &str) -> Member<'a> {
    let declared = node.field(name);
    Member {
        named: declared.is_some() && node.form() == Form::Struct,
        node: declared.unwrap_or(&Untyped),
    }
}

/// The type of a list's elements.
fn element(node: &dyn TypeNode) -> &dyn TypeNode {
    node.items().unwrap_or(&Untyped)
}

#[cfg(test)]
pub(crate) mod tests;

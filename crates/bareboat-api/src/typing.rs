//! The type information that merging needs: which lists are sets or maps, their keys, and which
//! values are atomic.
//!
//! The table of facts implements it for built-in kinds, the structural schema for custom kinds.

use crate::Value;

/// The form of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeType {
    /// A leaf: string, number, boolean, or anything that is replaced as a whole.
    Scalar,
    /// A struct or an object with declared members; other members are errors unless
    /// [`TypeNode::preserves_unknown`].
    Struct,
    /// A map from any key to values of one type.
    Map,
    /// A list.
    List(ListType),
    /// No type information: maps merge member by member, lists are atomic.
    Untyped,
}

/// The type of a leaf in an applied configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// A string.
    String,
    /// An integer or a float.
    Number,
    /// A boolean.
    Boolean,
    /// Any of these.
    Any,
    /// Any value: decoding and validation check it.
    Open,
}

/// How the elements of a list are identified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListType {
    /// Not at all: the list is one value.
    Atomic,
    /// By their value.
    Set,
    /// By some of their members ([`TypeNode::list_keys`]).
    Map,
}

/// A member that identifies elements of a map list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListKey {
    /// The member's name.
    pub name: crate::Str,
    /// The value that an absent member counts as.
    pub default: Option<Value>,
}

/// How strategic merge patch treats a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PatchStrategy<'a> {
    /// Whether a list merges with the old one instead of replacing it.
    pub merge: bool,
    /// Whether members of the old object that the patch does not retain are removed.
    pub retain_keys: bool,
    /// The member that matches elements of a merging list of objects; `None` for primitives.
    pub merge_key: Option<&'a str>,
}

/// One node of an object's type.
///
/// ```
/// # mod bareboat { pub mod api { pub use bareboat_api::*; } }
/// use bareboat::api::typing::{ListType, NodeType, TypeNode};
///
/// /// An object with a set of texts, `names`, and nothing else that is known.
/// struct Roll;
/// struct Names;
/// struct Name;
///
/// impl TypeNode for Roll {
///     fn node_type(&self) -> NodeType {
///         NodeType::Struct
///     }
///     fn field(&self, name: &str) -> Option<&dyn TypeNode> {
///         (name == "names").then_some(&Names as &dyn TypeNode)
///     }
///     fn items(&self) -> Option<&dyn TypeNode> {
///         None
///     }
/// }
///
/// impl TypeNode for Names {
///     fn node_type(&self) -> NodeType {
///         NodeType::List(ListType::Set)
///     }
///     fn field(&self, _: &str) -> Option<&dyn TypeNode> {
///         None
///     }
///     fn items(&self) -> Option<&dyn TypeNode> {
///         Some(&Name)
///     }
/// }
///
/// impl TypeNode for Name {
///     fn node_type(&self) -> NodeType {
///         NodeType::Scalar
///     }
///     fn field(&self, _: &str) -> Option<&dyn TypeNode> {
///         None
///     }
///     fn items(&self) -> Option<&dyn TypeNode> {
///         None
///     }
/// }
/// # assert!(Roll.field("names").is_some_and(|names| names.items().is_some()));
/// ```
pub trait TypeNode: Send + Sync {
    /// Returns the type of this node: scalar, struct, map, list, or untyped.
    fn node_type(&self) -> NodeType;

    /// Returns the type of a leaf.
    fn scalar(&self) -> Scalar {
        Scalar::Open
    }

    /// Returns the type of a declared member of a struct, or of the values of a map.
    fn field(&self, name: &str) -> Option<&dyn TypeNode>;

    /// Returns the type of a list's elements.
    fn items(&self) -> Option<&dyn TypeNode>;

    /// Returns the members that identify the elements of a map list.
    fn list_keys(&self) -> &[ListKey] {
        &[]
    }

    /// Returns whether a struct or map is owned and replaced as one value.
    fn is_atomic(&self) -> bool {
        false
    }

    /// Returns whether a struct keeps members that it does not declare.
    fn preserves_unknown(&self) -> bool {
        false
    }

    /// Returns how strategic merge treats the value.
    fn patch_strategy(&self) -> PatchStrategy<'_> {
        PatchStrategy::default()
    }

    /// Returns whether strategic merge replaces the object as a whole (`patchStrategy=replace`).
    fn patch_replaces(&self) -> bool {
        false
    }
}

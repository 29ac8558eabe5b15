//! What merging must know of a type: which lists are sets or maps, what their keys are, what is atomic.
//!
//! Built-in kinds answer from the table of facts, custom kinds from their structural schema.

use crate::Value;

/// How the value at a place is put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A leaf: string, number, boolean, or anything that is replaced as a whole.
    Scalar,
    /// A struct or an object with declared members; other members are errors unless
    /// [`TypeNode::preserves_unknown`].
    Struct,
    /// A map from any key to values of one type.
    Map,
    /// A list.
    List(ListType),
    /// Nothing is known: maps merge member by member, lists are atomic.
    Untyped,
}

/// What a leaf takes in a configuration that is applied.
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
    /// Whatever comes: decoding and validation judge it.
    Open,
}

/// How the elements of a list are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListType {
    /// The list is one value.
    Atomic,
    /// Elements are their own identity.
    Set,
    /// Elements are objects identified by some of their members ([`TypeNode::list_keys`]).
    Map,
}

/// A member that identifies elements of a map list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListKey {
    /// The member's name.
    pub name: crate::Str,
    /// What an absent member counts as.
    pub default: Option<Value>,
}

/// How strategic merge patch treats a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PatchStrategy<'a> {
    /// A list merges with the old one rather than replacing it.
    pub merge: bool,
    /// Members of the old object that the patch does not retain go away.
    pub retain_keys: bool,
    /// The member by which elements of a merging list of objects are matched; `None` for primitives.
    pub merge_key: Option<&'a str>,
}

/// One place in the type of an object.
pub trait TypeNode: Send + Sync {
    /// How the value here is put together.
    fn form(&self) -> Form;

    /// What a leaf takes.
    fn scalar(&self) -> Scalar {
        Scalar::Open
    }

    /// The type of a declared member of a struct, or of the values of a map.
    fn field(&self, name: &str) -> Option<&dyn TypeNode>;

    /// The type of a list's elements.
    fn items(&self) -> Option<&dyn TypeNode>;

    /// The members that identify the elements of a map list.
    fn list_keys(&self) -> &[ListKey] {
        &[]
    }

    /// Whether a struct or map is owned and replaced as one value.
    fn is_atomic(&self) -> bool {
        false
    }

    /// Whether a struct keeps members it does not declare.
    fn preserves_unknown(&self) -> bool {
        false
    }

    /// How strategic merge treats the value here.
    fn patch_strategy(&self) -> PatchStrategy<'_> {
        PatchStrategy::default()
    }

    /// Whether strategic merge replaces the object here as a whole (`patchStrategy=replace`).
    fn patch_replaces(&self) -> bool {
        false
    }
}

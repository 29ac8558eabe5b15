//! Which old value a new one corresponds to, and whether the two are the same.
//!
//! Members correspond by name, elements of map lists by their keys; other lists only as a whole.

use crate::schema::{Kind, Node};
use bareboat_api::Value;
use bareboat_api::typing::ListType;

/// The old value at a place, with the schema that tells how its parts correspond.
#[derive(Clone, Copy)]
pub(crate) struct Old<'a> {
    pub(crate) value: &'a Value,
    pub(crate) node: &'a Node,
}

impl<'a> Old<'a> {
    /// What a member of the new object corresponds to.
    pub(crate) fn member(self, name: &str) -> Option<Old<'a>> {
        Some(Old {
            node: self.node.member(name)?,
            value: self.value.get(name)?,
        })
    }

    /// What an element of the new list corresponds to.
    pub(crate) fn element(self, new: &Value) -> Option<Old<'a>> {
        if !self.node.is_map_list() {
            return None;
        }
        let value = self
            .value
            .as_array()?
            .iter()
            .find(|old| same_keys(self.node, new, old))?;
        Some(Old {
            node: self.node.items.as_deref()?,
            value,
        })
    }
}

impl Node {
    /// Whether this is a list whose elements are told apart by keys.
    pub(crate) fn is_map_list(&self) -> bool {
        self.kind == Kind::Array && self.list == Some(ListType::Map) && !self.keys.is_empty()
    }
}

/// Elements whose keys are missing or no scalars correspond to nothing.
fn same_keys(list: &Node, new: &Value, old: &Value) -> bool {
    list.keys
        .iter()
        .all(|key| match (new.get(&key.name), old.get(&key.name)) {
            (Some(a), Some(b)) => is_key(a) && a == b,
            _ => false,
        })
}

fn is_key(value: &Value) -> bool {
    matches!(
        value,
        Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_)
    )
}

/// Whether nothing changed, where the order of a map list does not count.
///
/// Members without a schema correspond to nothing, so an object that has some is never the same:
/// upstream forgives nothing there, and what one server refuses the other must not take.
pub(crate) fn same(new: &Value, old: Old<'_>) -> bool {
    match (new, old.value) {
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(name, value)| old.member(name).is_some_and(|before| same(value, before)))
        }
        (Value::Array(a), Value::Array(b)) if old.node.list == Some(ListType::Map) => {
            a.len() == b.len()
                && a.iter()
                    .all(|item| old.element(item).is_some_and(|before| same(item, before)))
        }
        (a, b) => a == b,
    }
}

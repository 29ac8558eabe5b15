//! Finds the old value of a new one, and compares the two.
//!
//! Members correspond by name, elements of map lists by their keys; other lists only as a whole.

use crate::schema::{Kind, Node};
use bareboat_api::Value;
use bareboat_api::typing::ListType;
use std::cell::OnceCell;
use std::collections::HashMap;

/// The old value at a place, with the schema that defines how its parts correspond.
#[derive(Clone, Copy)]
pub(crate) struct Old<'a> {
    pub(crate) value: &'a Value,
    pub(crate) node: &'a Node,
}

impl<'a> Old<'a> {
    /// Returns the old value of a member.
    pub(crate) fn member(self, name: &str) -> Option<Old<'a>> {
        Some(Old {
            node: self.node.member(name)?,
            value: self.value.get(name)?,
        })
    }

    /// Returns a lookup of the old values of list elements.
    pub(crate) fn elements(self) -> Elements<'a> {
        let list = self.value.as_array().filter(|_| self.node.is_map_list());
        Elements {
            node: self.node,
            list: list.unwrap_or(&[]),
            by_key: None,
        }
    }
}

/// The old value at a place. It is looked up when it is needed, once: most updates are valid, and
/// need few old values.
pub(crate) struct Before<'p, 'v> {
    /// The old value that this one is a member of, and its name there.
    of: Option<(&'p Before<'p, 'v>, &'p str)>,
    found: OnceCell<Option<Old<'v>>>,
}

impl<'p, 'v> Before<'p, 'v> {
    /// An old value that is known, or known to be absent.
    pub(crate) fn known(old: Option<Old<'v>>) -> Before<'p, 'v> {
        Before {
            of: None,
            found: OnceCell::from(old),
        }
    }

    /// Returns the old value of a member.
    pub(crate) fn member(&'p self, name: &'p str) -> Before<'p, 'v> {
        match self.found.get() {
            Some(None) => Before::known(None),
            _ => Before {
                of: Some((self, name)),
                found: OnceCell::new(),
            },
        }
    }

    /// Looks the old value up.
    pub(crate) fn find(&self) -> Option<Old<'v>> {
        *self.found.get_or_init(|| {
            let (of, name) = self.of?;
            of.find()?.member(name)
        })
    }
}

/// Lists with at most this many elements are searched linearly; longer ones by key.
const FEW: usize = 16;

/// The elements of an old map list, found by their keys.
pub(crate) struct Elements<'a> {
    node: &'a Node,
    list: &'a [Value],
    /// The first element with each key; only for long lists.
    by_key: Option<HashMap<Vec<u8>, usize>>,
}

impl<'a> Elements<'a> {
    /// Returns the old value of an element.
    pub(crate) fn find(&mut self, new: &Value) -> Option<Old<'a>> {
        let Elements { node, list, .. } = *self;
        let value = match list.len() <= FEW {
            true => list.iter().find(|old| same_keys(node, new, old)),
            false => self.find_by_key(new),
        };
        Some(Old {
            node: node.items.as_deref()?,
            value: value?,
        })
    }

    fn find_by_key(&mut self, new: &Value) -> Option<&'a Value> {
        let (node, list) = (self.node, self.list);
        let by_key = self.by_key.get_or_insert_with(|| {
            let mut by_key = HashMap::with_capacity(list.len());
            for (index, old) in list.iter().enumerate() {
                if let Some(key) = key_of(node, old) {
                    by_key.entry(key).or_insert(index);
                }
            }
            by_key
        });
        let found = &list[*by_key.get(&key_of(node, new)?)?];
        match same_keys(node, new, found) {
            true => Some(found),
            // Two different numbers may have the same text.
            false => list.iter().find(|old| same_keys(node, new, old)),
        }
    }
}

/// Returns the keys of an element; `None` if it has no old value.
fn key_of(list: &Node, element: &Value) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    for key in &list.keys {
        let value = element.get(&key.name).filter(|value| is_key(value))?;
        text.extend_from_slice(&value.to_json());
        text.push(0);
    }
    Some(text)
}

impl Node {
    /// Returns whether this is a list whose elements have keys.
    pub(crate) fn is_map_list(&self) -> bool {
        self.kind == Kind::Array && self.list == Some(ListType::Map) && !self.keys.is_empty()
    }
}

/// Returns whether two elements have the same keys; missing keys and keys that are not scalars
/// match nothing.
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

/// Returns whether nothing changed; the order of a map list does not count.
///
/// Members without a schema correspond to nothing, so an object with such members always counts as
/// changed. Upstream does not ratchet there, and both servers must reject the same objects.
pub(crate) fn same(new: &Value, old: Old<'_>) -> bool {
    match (new, old.value) {
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(name, value)| old.member(name).is_some_and(|before| same(value, before)))
        }
        (Value::Array(a), Value::Array(b)) if old.node.list == Some(ListType::Map) => {
            let mut elements = old.elements();
            a.len() == b.len()
                && a.iter().all(|item| {
                    let before = elements.find(item);
                    before.is_some_and(|before| same(item, before))
                })
        }
        (a, b) => a == b,
    }
}

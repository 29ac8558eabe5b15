//! Sets of fields, in the format of managedFields (`fieldsV1`).
//!
//! A set is kept in its stored form: a trie of objects whose keys name a member (`f:`), an element
//! of a map list (`k:`), of a set (`v:`) or by index (`i:`). An empty object means that the place
//! itself belongs to the set, as `"."` does beside children. So reading and writing a set costs
//! nothing, and the operations are merges of sorted maps. [`crate::typed`] computes the fields of
//! an object.

mod element;
mod operations;
mod print;

pub use element::{Element, FieldsError};
pub(crate) use element::{field_key, keyed_key, value_key};
pub(crate) use operations::{children, common, owns};

use bareboat_api::{Map, Str, Value};

/// The key that marks a place with children as a member of the set.
pub(crate) const ITSELF: &str = ".";

/// A set of fields.
///
/// Invariants: keys are canonical (see [`Element`]), every node is an object, and a node whose only
/// key would be `"."` is empty instead. At the root `"."` does not occur.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FieldSet(pub(crate) Map);

impl FieldSet {
    /// Returns the empty set.
    pub const fn new() -> FieldSet {
        FieldSet(Map::new())
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns a set of one field, given by a path of named members.
    pub fn of_names(path: &[&str]) -> FieldSet {
        let mut set = FieldSet::new();
        set.insert_names(path);
        set
    }

    /// Adds a field, given by a path of named members; the empty path adds nothing.
    pub fn insert_names(&mut self, path: &[&str]) {
        let Some((last, above)) = path.split_last() else {
            return;
        };
        let mut level = &mut self.0;
        for name in above {
            let key = field_key(name);
            let fresh = !level.contains_key(&key);
            let child = level.object_mut(&key);
            if !fresh && child.is_empty() {
                child.insert(ITSELF, Value::object());
            }
            level = child;
        }
        let child = level.object_mut(&field_key(last));
        if !child.is_empty() {
            child.insert(ITSELF, Value::object());
        }
    }

    /// Returns whether the field at a path of named members belongs to the set.
    pub fn has_names(&self, path: &[&str]) -> bool {
        let node = path.iter().try_fold(&self.0, |level, name| {
            level.get(&field_key(name))?.as_object()
        });
        !path.is_empty() && node.is_some_and(owns)
    }

    /// Parses `fieldsV1` and brings keys into their canonical form; keys of unknown type are
    /// dropped.
    pub fn parse(fields: &Value) -> Result<FieldSet, FieldsError> {
        match fields {
            Value::Null => Ok(FieldSet::new()),
            Value::Object(members) => Ok(FieldSet(parse_children(members)?)),
            other => Err(FieldsError::NotAnObject(other.type_name())),
        }
    }

    /// Takes `fieldsV1` that this crate has written.
    pub(crate) fn trusted(fields: Value) -> FieldSet {
        match fields {
            Value::Object(members) => FieldSet(members),
            _ => FieldSet::new(),
        }
    }

    /// Returns the `fieldsV1` of this set.
    pub fn into_value(self) -> Value {
        Value::Object(self.0)
    }
}

/// Parses the children of a node, without `"."`.
fn parse_children(members: &Map) -> Result<Map, FieldsError> {
    let mut children: Vec<(Str, Value)> = Vec::with_capacity(members.len());
    for (key, child) in members.iter() {
        if key == ITSELF {
            continue;
        }
        let Some(key) = element::canonical(key)? else {
            continue;
        };
        let Value::Object(child) = child else {
            return Err(FieldsError::NotAnObject(child.type_name()));
        };
        let mut node = parse_children(child)?;
        if !node.is_empty() && child.contains_key(ITSELF) {
            node.insert(ITSELF, Value::object());
        }
        children.push((key, Value::Object(node)));
    }
    Ok(Map::from_unsorted(children))
}

#[cfg(test)]
pub(crate) mod tests;

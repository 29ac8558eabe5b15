//! Sets of fields, as managedFields records them (`fieldsV1`).
//!
//! A set is kept in the very form in which it is stored: a trie of objects whose keys name a member
//! (`f:`), an element of a map list (`k:`), of a set (`v:`) or by index (`i:`). An empty object says
//! that the place itself belongs to the set, as `"."` does beside children. So reading and writing a
//! set costs nothing, and the operations are merges of sorted maps. Which fields an object has is
//! computed in [`crate::typed`].

mod element;
mod operations;
mod print;

pub use element::{Element, FieldsError};
pub(crate) use element::{field_key, keyed_key, value_key};
pub(crate) use operations::{children, owns};

use bareboat_api::{Map, Str, Value};

/// The key that says of a place with children that it belongs to the set itself.
pub(crate) const ITSELF: &str = ".";

/// A set of fields.
///
/// Invariants: keys are canonical (see [`Element`]), every node is an object, and a node whose only
/// key would be `"."` is empty instead. At the root `"."` does not occur.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FieldSet(pub(crate) Map);

impl FieldSet {
    /// The empty set.
    pub const fn new() -> FieldSet {
        FieldSet(Map::new())
    }

    /// Whether no field belongs to the set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A set of one field that is reached through named members.
    pub fn of_names(path: &[&str]) -> FieldSet {
        let mut set = FieldSet::new();
        set.insert_names(path);
        set
    }

    /// Adds a field that is reached through named members; the empty path adds nothing.
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

    /// Whether the field reached through named members belongs to the set.
    pub fn has_names(&self, path: &[&str]) -> bool {
        let node = path.iter().try_fold(&self.0, |level, name| {
            level.get(&field_key(name))?.as_object()
        });
        !path.is_empty() && node.is_some_and(owns)
    }

    /// Reads `fieldsV1`, bringing keys into their canonical form; keys of unknown type are dropped.
    pub fn parse(fields: &Value) -> Result<FieldSet, FieldsError> {
        match fields {
            Value::Null => Ok(FieldSet::new()),
            Value::Object(members) => Ok(FieldSet(parse_children(members)?)),
            other => Err(FieldsError::NotAnObject(other.type_name())),
        }
    }

    /// Takes `fieldsV1` as this crate has written it before.
    pub(crate) fn trusted(fields: Value) -> FieldSet {
        match fields {
            Value::Object(members) => FieldSet(members),
            _ => FieldSet::new(),
        }
    }

    /// The `fieldsV1` of this set.
    pub fn into_value(self) -> Value {
        Value::Object(self.0)
    }
}

/// Reads the children of a node; `"."` is left out.
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

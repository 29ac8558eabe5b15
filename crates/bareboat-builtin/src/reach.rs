//! Shorthands for reading and filling values in columns, defaults and strategies.

use bareboat_api::{Map, Value};

/// Reads values at a path of members.
pub(crate) trait Reach {
    /// Returns the text at a path, empty if missing.
    fn text(&self, path: &[&str]) -> &str;
    /// Returns the integer at a path, if any.
    fn int(&self, path: &[&str]) -> Option<i64>;
    /// Returns the list at a path, empty if missing.
    fn list(&self, path: &[&str]) -> &[Value];
    /// Returns the map at a path, if any.
    fn members(&self, path: &[&str]) -> Option<&Map>;
    /// Returns whether the value at a path is `true`.
    fn flag(&self, path: &[&str]) -> bool;
    /// Returns whether a path has a value other than `null`.
    fn has(&self, path: &[&str]) -> bool;
}

impl Reach for Value {
    fn text(&self, path: &[&str]) -> &str {
        self.at(path).and_then(Value::as_str).unwrap_or("")
    }
    fn int(&self, path: &[&str]) -> Option<i64> {
        self.at(path)?.as_i64()
    }
    fn list(&self, path: &[&str]) -> &[Value] {
        self.at(path).and_then(Value::as_array).unwrap_or(&[])
    }
    fn members(&self, path: &[&str]) -> Option<&Map> {
        self.at(path)?.as_object()
    }
    fn flag(&self, path: &[&str]) -> bool {
        self.at(path).and_then(Value::as_bool).unwrap_or(false)
    }
    fn has(&self, path: &[&str]) -> bool {
        self.at(path).is_some_and(|value| !value.is_null())
    }
}

/// Sets missing members.
pub(crate) trait Fill {
    /// Sets a member unless it exists.
    fn fill(&mut self, key: &str, value: impl Into<Value>);
    /// Returns the object under a key, if any.
    fn sub(&mut self, key: &str) -> Option<&mut Map>;
    /// Returns the objects of a list under a key.
    fn each(&mut self, key: &str) -> impl Iterator<Item = &mut Map>;
}

impl Fill for Map {
    fn fill(&mut self, key: &str, value: impl Into<Value>) {
        let place = self.entry_or_insert_with(key, || Value::Null);
        if place.is_null() {
            *place = value.into();
        }
    }
    fn sub(&mut self, key: &str) -> Option<&mut Map> {
        self.get_mut(key)?.as_object_mut()
    }
    fn each(&mut self, key: &str) -> impl Iterator<Item = &mut Map> {
        self.get_mut(key)
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
            .filter_map(Value::as_object_mut)
    }
}

/// Copies a member from another map, or removes it if the other map lacks it.
pub(crate) fn copy_member(to: &mut Map, from: &Map, key: &str) {
    match from.get(key) {
        Some(value) => {
            to.insert(key, value.clone());
        }
        None => {
            to.remove(key);
        }
    }
}

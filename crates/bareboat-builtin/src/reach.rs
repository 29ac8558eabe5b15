//! Short ways to reach into values: what tables read, defaults fill and strategies compare.

use bareboat_api::{Map, Value};

/// Reading along a path of members.
pub(crate) trait Reach {
    /// The text there, or nothing.
    fn text(&self, path: &[&str]) -> &str;
    /// The integer there, if there is one.
    fn int(&self, path: &[&str]) -> Option<i64>;
    /// The list there, or an empty one.
    fn list(&self, path: &[&str]) -> &[Value];
    /// The map there, if there is one.
    fn members(&self, path: &[&str]) -> Option<&Map>;
    /// Whether `true` stands there.
    fn flag(&self, path: &[&str]) -> bool;
    /// Whether anything but `null` stands there.
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

/// Filling in members that are missing.
pub(crate) trait Fill {
    /// Sets a member unless it is there.
    fn fill(&mut self, key: &str, value: impl Into<Value>);
    /// The object under a key, if there is one.
    fn sub(&mut self, key: &str) -> Option<&mut Map>;
    /// The objects of a list under a key.
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

/// Takes over a member from another map, or drops it when that has none.
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

//! An API object: a JSON object with type meta and metadata, read and changed in place.

use crate::{Map, Str, Value};

/// An API object; always a JSON object inside.
#[derive(Clone, Debug, PartialEq)]
pub struct Object(Value);

impl Default for Object {
    fn default() -> Self {
        Object(Value::object())
    }
}

impl TryFrom<Value> for Object {
    type Error = Value;
    /// Converts a JSON object; returns any other value as the error.
    fn try_from(value: Value) -> Result<Object, Value> {
        match value {
            Value::Object(_) => Ok(Object(value)),
            other => Err(other),
        }
    }
}

impl From<Object> for Value {
    fn from(object: Object) -> Value {
        object.0
    }
}

impl Object {
    /// Returns an object with type meta and a name.
    pub fn new(api_version: &str, kind: &str, name: &str) -> Object {
        let mut object = Object::default();
        object.set_type(api_version, kind);
        object.set_meta("name", Value::string(name));
        object
    }

    /// Returns the object as a value.
    pub fn value(&self) -> &Value {
        &self.0
    }

    /// Returns the object as a mutable value; it must stay a JSON object.
    pub fn value_mut(&mut self) -> &mut Value {
        &mut self.0
    }

    /// Returns the members of the object.
    pub fn map(&self) -> &Map {
        self.0.as_object().expect("an Object holds a JSON object")
    }

    /// Returns the members, mutable.
    pub fn map_mut(&mut self) -> &mut Map {
        self.0.make_object()
    }

    /// Returns the top-level member with this name.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.map().get(key)
    }

    /// Returns the value at a path of members.
    pub fn at(&self, path: &[&str]) -> Option<&Value> {
        self.0.at(path)
    }

    /// Returns `apiVersion`, or the empty string.
    pub fn api_version(&self) -> &str {
        self.map().get_str("apiVersion").unwrap_or("")
    }

    /// Returns `kind`, or the empty string.
    pub fn kind(&self) -> &str {
        self.map().get_str("kind").unwrap_or("")
    }

    /// Sets `apiVersion` and `kind`.
    pub fn set_type(&mut self, api_version: &str, kind: &str) {
        let map = self.map_mut();
        map.insert("apiVersion", Value::string(api_version));
        map.insert("kind", Value::string(kind));
    }

    /// Returns the metadata, if there is any.
    pub fn metadata(&self) -> Option<&Map> {
        self.get("metadata")?.as_object()
    }

    /// Returns the metadata, mutable, and creates it if there is none.
    pub fn metadata_mut(&mut self) -> &mut Map {
        self.map_mut().object_mut("metadata")
    }

    /// Returns a member of the metadata.
    pub fn meta(&self, key: &str) -> Option<&Value> {
        self.metadata()?.get(key)
    }

    /// Returns a string of the metadata, or the empty string.
    pub fn meta_str(&self, key: &str) -> &str {
        self.meta(key).and_then(Value::as_str).unwrap_or("")
    }

    /// Sets a member of the metadata.
    pub fn set_meta(&mut self, key: &str, value: Value) {
        self.metadata_mut().insert(key, value);
    }

    /// Removes a member of the metadata.
    pub fn remove_meta(&mut self, key: &str) -> Option<Value> {
        match self.map_mut().get_mut("metadata") {
            Some(Value::Object(meta)) => meta.remove(key),
            _ => None,
        }
    }

    /// Returns `metadata.name`, or the empty string.
    pub fn name(&self) -> &str {
        self.meta_str("name")
    }

    /// Returns `metadata.namespace`, or the empty string.
    pub fn namespace(&self) -> &str {
        self.meta_str("namespace")
    }

    /// Returns `metadata.uid`, or the empty string.
    pub fn uid(&self) -> &str {
        self.meta_str("uid")
    }

    /// Returns `metadata.resourceVersion`, or the empty string.
    pub fn resource_version(&self) -> &str {
        self.meta_str("resourceVersion")
    }

    /// Returns `metadata.generation`, or zero.
    pub fn generation(&self) -> i64 {
        self.meta("generation").and_then(Value::as_i64).unwrap_or(0)
    }

    /// Returns `metadata.deletionTimestamp`, if deletion has begun.
    pub fn deletion_timestamp(&self) -> Option<&str> {
        self.meta("deletionTimestamp")?.as_str()
    }

    /// Returns the value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.meta("labels")?.get(key)?.as_str()
    }

    /// Returns the value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.meta("annotations")?.get(key)?.as_str()
    }

    /// Returns `metadata.finalizers`.
    pub fn finalizers(&self) -> impl Iterator<Item = &str> {
        self.meta("finalizers")
            .and_then(Value::as_array)
            .unwrap_or(&[])
            .iter()
            .filter_map(Value::as_str)
    }

    /// Sets `metadata.finalizers`, or removes it when there are none.
    pub fn set_finalizers(&mut self, finalizers: Vec<Str>) {
        if finalizers.is_empty() {
            self.remove_meta("finalizers");
        } else {
            self.set_meta("finalizers", finalizers.into_iter().collect());
        }
    }
}

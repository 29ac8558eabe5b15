//! An object of the API: a JSON object with type meta and metadata, read and changed in place.

use crate::{Map, Str, Value};

/// An object of the API; always a JSON object inside.
#[derive(Clone, Debug, PartialEq)]
pub struct Object(Value);

impl Default for Object {
    fn default() -> Self {
        Object(Value::object())
    }
}

impl TryFrom<Value> for Object {
    type Error = Value;
    /// Gives the value back when it is no JSON object.
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
    /// An object with type meta and a name.
    pub fn new(api_version: &str, kind: &str, name: &str) -> Object {
        let mut object = Object::default();
        object.set_type(api_version, kind);
        object.set_meta("name", Value::string(name));
        object
    }

    /// The object as a value.
    pub fn value(&self) -> &Value {
        &self.0
    }

    /// The object as a value for changing; it must stay a JSON object.
    pub fn value_mut(&mut self) -> &mut Value {
        &mut self.0
    }

    /// The members.
    pub fn map(&self) -> &Map {
        self.0.as_object().expect("an Object holds a JSON object")
    }

    /// The members for changing.
    pub fn map_mut(&mut self) -> &mut Map {
        self.0.make_object()
    }

    /// A member.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.map().get(key)
    }

    /// The value found by walking members one after another.
    pub fn at(&self, path: &[&str]) -> Option<&Value> {
        self.0.at(path)
    }

    /// `apiVersion`, or nothing.
    pub fn api_version(&self) -> &str {
        self.map().get_str("apiVersion").unwrap_or("")
    }

    /// `kind`, or nothing.
    pub fn kind(&self) -> &str {
        self.map().get_str("kind").unwrap_or("")
    }

    /// Sets `apiVersion` and `kind`.
    pub fn set_type(&mut self, api_version: &str, kind: &str) {
        let map = self.map_mut();
        map.insert("apiVersion", Value::string(api_version));
        map.insert("kind", Value::string(kind));
    }

    /// The metadata, if there is any.
    pub fn metadata(&self) -> Option<&Map> {
        self.get("metadata")?.as_object()
    }

    /// The metadata for changing, made if there is none.
    pub fn metadata_mut(&mut self) -> &mut Map {
        self.map_mut().object_mut("metadata")
    }

    /// A member of the metadata.
    pub fn meta(&self, key: &str) -> Option<&Value> {
        self.metadata()?.get(key)
    }

    /// A string of the metadata, or nothing.
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

    /// `metadata.name`, or nothing.
    pub fn name(&self) -> &str {
        self.meta_str("name")
    }

    /// `metadata.namespace`, or nothing.
    pub fn namespace(&self) -> &str {
        self.meta_str("namespace")
    }

    /// `metadata.uid`, or nothing.
    pub fn uid(&self) -> &str {
        self.meta_str("uid")
    }

    /// `metadata.resourceVersion`, or nothing.
    pub fn resource_version(&self) -> &str {
        self.meta_str("resourceVersion")
    }

    /// `metadata.generation`, or zero.
    pub fn generation(&self) -> i64 {
        self.meta("generation").and_then(Value::as_i64).unwrap_or(0)
    }

    /// `metadata.deletionTimestamp`, once deletion has begun.
    pub fn deletion_timestamp(&self) -> Option<&str> {
        self.meta("deletionTimestamp")?.as_str()
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.meta("labels")?.get(key)?.as_str()
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.meta("annotations")?.get(key)?.as_str()
    }

    /// `metadata.finalizers`.
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

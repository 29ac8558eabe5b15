//! Reads members of an object by name, and reports wrong ones with their path.

use bareboat_api::{FieldError, FieldPath, Value};

/// An object that is being read.
pub(super) struct Reader<'a> {
    value: &'a Value,
    path: FieldPath,
    errors: &'a mut Vec<FieldError>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        value: &'a Value,
        path: FieldPath,
        errors: &'a mut Vec<FieldError>,
    ) -> Reader<'a> {
        Reader {
            value,
            path,
            errors,
        }
    }

    /// Returns the object itself.
    pub(super) fn value(&self) -> &'a Value {
        self.value
    }

    pub(super) fn here(&self) -> &FieldPath {
        &self.path
    }

    pub(super) fn path(&self, key: &str) -> FieldPath {
        self.path.child(key)
    }

    pub(super) fn report(&mut self, error: FieldError) {
        self.errors.push(error);
    }

    /// Reports a member with an invalid value.
    pub(super) fn wrong(&mut self, key: &str, value: impl Into<Value>, why: impl Into<String>) {
        self.report(FieldError::invalid(self.path.child(key), value, why));
    }

    /// Reports a missing member.
    pub(super) fn requires(&mut self, key: &str, why: &str) {
        // A member of the wrong type was reported already.
        if self.member(key).is_none() {
            self.report(FieldError::required(self.path.child(key), why));
        }
    }

    /// Reports unknown members, and a value that is not an object.
    pub(super) fn only(&mut self, known: &[&str]) -> Option<()> {
        let Value::Object(members) = self.value else {
            let why = format!("must be an object with {}", known.join(", "));
            self.report(FieldError::type_invalid(
                self.path.clone(),
                self.value.clone(),
                why,
            ));
            return None;
        };
        for key in members.keys().filter(|key| !known.contains(key)) {
            let why = format!("unknown field; known are {}", known.join(", "));
            self.errors
                .push(FieldError::forbidden(self.path.child(key), why));
        }
        Some(())
    }

    fn member(&self, key: &str) -> Option<&'a Value> {
        self.value.get(key).filter(|value| !value.is_null())
    }

    fn typed<T>(
        &mut self,
        key: &str,
        must: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.member(key)?;
        let found = read(value);
        if found.is_none() {
            let at = self.path.child(key);
            self.report(FieldError::type_invalid(at, value.clone(), must));
        }
        found
    }

    pub(super) fn text(&mut self, key: &str) -> Option<&'a str> {
        self.typed(key, "must be a string", Value::as_str)
    }

    pub(super) fn integer(&mut self, key: &str) -> Option<i64> {
        self.typed(key, "must be an integer", Value::as_i64)
    }

    pub(super) fn boolean(&mut self, key: &str) -> Option<bool> {
        self.typed(key, "must be true or false", Value::as_bool)
    }

    pub(super) fn texts(&mut self, key: &str) -> Vec<&'a str> {
        let read = |value: &'a Value| value.as_array()?.iter().map(Value::as_str).collect();
        let found: Option<Vec<&str>> = self.typed(key, "must be a list of strings", read);
        found.unwrap_or_default()
    }

    /// Returns a reader of a nested object.
    pub(super) fn object(&mut self, key: &str) -> Option<Reader<'_>> {
        let value = self.member(key)?;
        Some(Reader {
            value,
            path: self.path.child(key),
            errors: self.errors,
        })
    }
}

//! A view of a schema's source, read without compiling, for the validation of definitions.

use bareboat_api::{Map, Value};

/// A view of one `JSONSchemaProps`.
#[derive(Clone, Copy)]
pub(super) struct Props<'a>(pub(super) &'a Map);

impl<'a> Props<'a> {
    pub(super) fn of(value: &'a Value) -> Option<Props<'a>> {
        value.as_object().map(Props)
    }

    /// Returns the schema of a version.
    pub(super) fn of_version(version: &'a Value) -> Option<Props<'a>> {
        Props::of(version.at(&["schema", "openAPIV3Schema"])?)
    }

    /// Returns the value of a keyword, unless it is a zero value.
    pub(super) fn get(self, key: &str) -> Option<&'a Value> {
        self.0.get(key).filter(|value| !is_zero(value))
    }

    pub(super) fn text(self, key: &str) -> &'a str {
        self.0.get_str(key).unwrap_or("")
    }

    pub(super) fn kind(self) -> &'a str {
        self.text("type")
    }

    pub(super) fn truth(self, key: &str) -> bool {
        self.0.get(key).and_then(Value::as_bool).unwrap_or(false)
    }

    pub(super) fn list(self, key: &str) -> &'a [Value] {
        self.0.get(key).and_then(Value::as_array).unwrap_or(&[])
    }

    pub(super) fn texts(self, key: &str) -> impl Iterator<Item = &'a str> {
        self.list(key).iter().filter_map(Value::as_str)
    }

    /// Returns the schema of a keyword with one schema: `not`, `items` that is not an array,
    /// `additionalProperties` that is not a boolean.
    pub(super) fn child(self, key: &str) -> Option<Props<'a>> {
        self.0.get(key).and_then(Props::of)
    }

    /// Returns the schemas of `allOf` and the like.
    pub(super) fn children(self, key: &str) -> impl Iterator<Item = (usize, Props<'a>)> {
        self.list(key)
            .iter()
            .enumerate()
            .filter_map(|(index, value)| Some((index, Props::of(value)?)))
    }

    /// Returns the schemas of `properties` and the like.
    pub(super) fn members(self, key: &str) -> impl Iterator<Item = (&'a str, Props<'a>)> {
        self.0
            .get(key)
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(Map::iter)
            .filter_map(|(name, value)| Some((name, Props::of_member(value)?)))
    }

    pub(super) fn property(self, name: &str) -> Option<Props<'a>> {
        Props::of_member(self.0.get("properties")?.get(name)?)
    }

    /// Returns the schema of a named member, where null counts as an empty schema.
    fn of_member(value: &'a Value) -> Option<Props<'a>> {
        static NOTHING: Map = Map::new();
        match value {
            Value::Null => Some(Props(&NOTHING)),
            other => Props::of(other),
        }
    }

    pub(super) fn default(self) -> Option<&'a Value> {
        self.0.get("default").filter(|value| !value.is_null())
    }

    /// Returns whether `additionalProperties` is present.
    pub(super) fn has_additional(self) -> bool {
        matches!(
            self.0.get("additionalProperties"),
            Some(Value::Bool(_) | Value::Object(_))
        )
    }

    /// Calls the function for this schema and all below it, until it returns `true`.
    pub(super) fn any(self, test: &mut dyn FnMut(Props<'a>) -> bool) -> bool {
        if test(self) {
            return true;
        }
        let single = ["items", "not", "additionalProperties", "additionalItems"];
        let lists = ["items", "allOf", "anyOf", "oneOf"];
        let maps = [
            "properties",
            "patternProperties",
            "definitions",
            "dependencies",
        ];
        single
            .iter()
            .filter_map(|key| self.child(key))
            .any(|child| child.any(test))
            || lists
                .iter()
                .any(|key| self.children(key).any(|(_, child)| child.any(test)))
            || maps
                .iter()
                .any(|key| self.members(key).any(|(_, child)| child.any(test)))
    }
}

/// Returns whether a value is a zero value, equal to absence.
pub(super) fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

//! Reads configuration files strictly: unknown fields, repeated fields and values of the wrong type are errors, and all
//! errors are reported together.

use bareboat_api::{FieldError, FieldPath, Map, Value};
use std::fmt;

/// Why a configuration cannot be used: every mistake in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigurationError(pub Vec<String>);

impl fmt::Display for ConfigurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("; "))
    }
}

impl std::error::Error for ConfigurationError {}

/// The group of both configurations.
const GROUP: &str = "apiserver.config.k8s.io";

/// Reads a YAML or JSON document of a kind in one of the versions.
pub(crate) fn document(
    text: &str,
    kind: &str,
    versions: &[&str],
) -> Result<Value, ConfigurationError> {
    let fail = |why: String| ConfigurationError(vec![why]);
    let parsed =
        bareboat_wire::yaml::parse(text.as_bytes()).map_err(|error| fail(error.to_string()))?;
    if !parsed.duplicates.is_empty() {
        return Err(ConfigurationError(parsed.duplicates));
    }
    let text = |key: &str| parsed.value.get(key).and_then(Value::as_str).unwrap_or("");
    let version = text("apiVersion");
    let known = versions
        .iter()
        .any(|known| version == format!("{GROUP}/{known}"));
    if text("kind") != kind || !known {
        return Err(fail(format!(
            "the file must be of kind {kind} and apiVersion {GROUP}/{}, not {:?} and {version:?}",
            versions[0],
            text("kind"),
        )));
    }
    Ok(parsed.value)
}

/// Collects mistakes while a document is read.
#[derive(Default)]
pub(crate) struct Findings(Vec<String>);

impl Findings {
    pub(crate) fn add(&mut self, error: FieldError) {
        self.0.push(error.to_string());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn finish<T>(self, value: T) -> Result<T, ConfigurationError> {
        match self.0.is_empty() {
            true => Ok(value),
            false => Err(ConfigurationError(self.0)),
        }
    }

    fn mistyped(&mut self, path: &FieldPath, wanted: &str) {
        self.0.push(format!("{}: must be {wanted}", path.as_str()));
    }

    /// Returns the members of an object that may have only these; empty if it is absent.
    pub(crate) fn object<'v>(
        &mut self,
        value: Option<&'v Value>,
        path: &FieldPath,
        known: &[&str],
    ) -> Fields<'v> {
        let map = match value {
            None | Some(Value::Null) => None,
            Some(Value::Object(map)) => Some(map),
            Some(_) => {
                self.mistyped(path, "an object");
                None
            }
        };
        for key in map.iter().flat_map(|map| map.keys()) {
            if !known.contains(&key) {
                let place = path.child(key);
                self.0.push(format!("unknown field {:?}", place.as_str()));
            }
        }
        Fields {
            map,
            path: path.clone(),
        }
    }
}

/// The members of an object that is being read.
pub(crate) struct Fields<'v> {
    map: Option<&'v Map>,
    pub(crate) path: FieldPath,
}

impl<'v> Fields<'v> {
    /// Whether the object is present.
    pub(crate) fn is_there(&self) -> bool {
        self.map.is_some()
    }

    pub(crate) fn get(&self, key: &str) -> Option<&'v Value> {
        let found = self.map?.get(key)?;
        (!found.is_null()).then_some(found)
    }

    pub(crate) fn at(&self, key: &str) -> FieldPath {
        self.path.child(key)
    }

    /// Returns a text, if it is present.
    pub(crate) fn text_or_none(&self, key: &str, findings: &mut Findings) -> Option<String> {
        match self.get(key)? {
            Value::String(text) => Some(text.to_string()),
            _ => {
                findings.mistyped(&self.at(key), "a string");
                None
            }
        }
    }

    /// Returns a text; empty if it is absent.
    pub(crate) fn text(&self, key: &str, findings: &mut Findings) -> String {
        self.text_or_none(key, findings).unwrap_or_default()
    }

    pub(crate) fn flag(&self, key: &str, findings: &mut Findings) -> Option<bool> {
        match self.get(key)? {
            Value::Bool(flag) => Some(*flag),
            _ => {
                findings.mistyped(&self.at(key), "true or false");
                None
            }
        }
    }

    /// Returns the items of a list with their paths.
    pub(crate) fn list(&self, key: &str, findings: &mut Findings) -> Vec<(FieldPath, &'v Value)> {
        let path = self.at(key);
        match self.get(key) {
            None => Vec::new(),
            Some(Value::Array(items)) => items
                .iter()
                .enumerate()
                .map(|(index, item)| (path.index(index), item))
                .collect(),
            Some(_) => {
                findings.mistyped(&path, "a list");
                Vec::new()
            }
        }
    }

    /// Returns a list of texts.
    pub(crate) fn texts(&self, key: &str, findings: &mut Findings) -> Vec<String> {
        let mut texts = Vec::new();
        for (path, item) in self.list(key, findings) {
            match item {
                Value::String(text) => texts.push(text.to_string()),
                _ => findings.mistyped(&path, "a string"),
            }
        }
        texts
    }
}

//! `AdmissionConfiguration`: the file with the settings of admission plug-ins.
//!
//! It names a file or has the settings in it, for each plug-in. This module reads the files; each plug-in reads its own
//! settings.

use bareboat_api::Value;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// The versions of the file.
const VERSIONS: [&str; 2] = ["apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1"];

/// The settings of admission plug-ins, by the plug-ins' names.
#[derive(Clone, Debug, Default)]
pub struct AdmissionConfiguration {
    plugins: Vec<PluginSettings>,
}

/// The settings of one plug-in.
#[derive(Clone, Debug)]
struct PluginSettings {
    name: String,
    settings: Value,
    /// The file they are in; relative paths in the settings are relative to it.
    file: PathBuf,
}

/// Why a file with settings of admission plug-ins cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmissionConfigurationError {
    path: PathBuf,
    why: String,
}

impl AdmissionConfigurationError {
    /// An error in a file.
    pub fn new(path: &Path, why: impl fmt::Display) -> AdmissionConfigurationError {
        AdmissionConfigurationError {
            path: path.to_owned(),
            why: why.to_string(),
        }
    }
}

impl fmt::Display for AdmissionConfigurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be used: {}", self.path.display(), self.why)
    }
}

impl std::error::Error for AdmissionConfigurationError {}

impl AdmissionConfiguration {
    /// Reads a file, and the files that it names.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, AdmissionConfigurationError> {
        let path = path.as_ref();
        let value = read(path)?;
        let fail = |why: String| AdmissionConfigurationError::new(path, why);
        let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or("");
        let (version, kind) = (text("apiVersion"), text("kind"));
        if kind != "AdmissionConfiguration" || !VERSIONS.contains(&version) {
            return Err(fail(format!(
                "it must be of kind AdmissionConfiguration and apiVersion {}, not {kind:?} and {version:?}",
                VERSIONS[0]
            )));
        }
        only(&value, "", &["apiVersion", "kind", "plugins"]).map_err(fail)?;
        let items = match value.get("plugins") {
            None | Some(Value::Null) => &[],
            Some(Value::Array(items)) => items.as_slice(),
            Some(_) => return Err(fail("plugins must be a list".to_owned())),
        };
        let mut plugins: Vec<PluginSettings> = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let place = format!("plugins[{index}]");
            only(item, &place, &["name", "path", "configuration"]).map_err(fail)?;
            let name = item.get("name").and_then(Value::as_str).unwrap_or("");
            if name.is_empty() {
                return Err(fail(format!("{place}.name: Required value")));
            }
            if plugins.iter().any(|known| known.name == name) {
                return Err(fail(format!("{place}.name: Duplicate value: {name:?}")));
            }
            let inner = item.get("configuration").filter(|value| !value.is_null());
            let named = item.get("path").and_then(Value::as_str).unwrap_or("");
            let (settings, file) = match (inner, named) {
                (Some(settings), _) => (settings.clone(), path.to_owned()),
                (None, "") => (Value::Null, path.to_owned()),
                (None, named) => {
                    let file = path.parent().unwrap_or(Path::new(".")).join(named);
                    (read(&file)?, file)
                }
            };
            plugins.push(PluginSettings {
                name: name.to_owned(),
                settings,
                file,
            });
        }
        Ok(AdmissionConfiguration { plugins })
    }

    /// Returns the settings of a plug-in, and the file that they are in; none if the file does not have any.
    pub fn plugin(&self, name: &str) -> Option<(&Value, &Path)> {
        let found = self.plugins.iter().find(|plugin| plugin.name == name)?;
        (!found.settings.is_null()).then_some((&found.settings, &found.file))
    }

    /// Returns the names of the plug-ins that have an entry.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.plugins.iter().map(|plugin| plugin.name.as_str())
    }
}

/// Reads YAML or JSON.
fn read(path: &Path) -> Result<Value, AdmissionConfigurationError> {
    let fail = |why: String| AdmissionConfigurationError::new(path, why);
    let text = fs::read(path).map_err(|error| fail(error.to_string()))?;
    let parsed = bareboat_wire::yaml::parse(&text).map_err(|error| fail(error.to_string()))?;
    if !parsed.duplicates.is_empty() {
        return Err(fail(parsed.duplicates.join("; ")));
    }
    Ok(parsed.value)
}

/// Checks that a value is an object without unknown members.
fn only(value: &Value, place: &str, known: &[&str]) -> Result<(), String> {
    let Some(map) = value.as_object() else {
        let place = if place.is_empty() { "the file" } else { place };
        return Err(format!("{place} must be an object"));
    };
    match map.keys().find(|key| !known.contains(key)) {
        None => Ok(()),
        Some(key) if place.is_empty() => Err(format!("unknown field {key:?}")),
        Some(key) => Err(format!("unknown field \"{place}.{key}\"")),
    }
}

#[cfg(test)]
mod tests;

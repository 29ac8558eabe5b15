//! The parts of writes: for each kind a plain object and pieces that may be added to it.

use super::tree::{self, Step};
use crate::support::Value;
use std::path::Path;

/// A kind that is written.
pub(super) struct Subject {
    /// Its name with the version used for reads: `v1/configmaps`.
    pub(super) resource: String,
    pub(super) plural: String,
    /// The versions used for writes, first the one for reads.
    pub(super) versions: Vec<Version>,
    /// Whether there is a status subresource.
    pub(super) status: bool,
    /// Whether there is a scale subresource.
    pub(super) scale: bool,
    pub(super) custom: bool,
    /// A definition to create first.
    pub(super) definition: Option<Value>,
}

/// A kind in one of its versions.
pub(super) struct Version {
    pub(super) api_version: String,
    pub(super) kind: String,
    /// A minimal valid object.
    pub(super) base: Value,
    pub(super) pieces: Vec<Piece>,
}

/// A path and values for it.
pub(super) struct Piece {
    pub(super) path: Vec<Step>,
    pub(super) values: Vec<Value>,
}

impl Piece {
    /// Returns whether the path is in the status.
    pub(super) fn of_status(&self) -> bool {
        self.path.first() == Some(&Step::Member("status".to_owned()))
    }
}

/// Reads all menus of a folder.
pub(super) fn all(folder: &Path) -> Vec<Subject> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "yaml"))
        .collect();
    files.sort();
    let mut subjects = Vec::new();
    for file in files {
        let text = std::fs::read(&file).unwrap();
        let parsed = bareboat_wire::yaml::parse(&text);
        let parsed = parsed.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert!(parsed.duplicates.is_empty(), "{:?}", parsed.duplicates);
        let menus: Value = serde_json::from_slice(&parsed.value.to_json()).unwrap();
        subjects.extend(menus.as_array().expect("a list of menus").iter().map(read));
    }
    subjects
}

fn read(menu: &Value) -> Subject {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let plural = text(&menu["plural"]);
    let versions: Vec<Version> = menu["versions"]
        .as_object()
        .expect("versions")
        .iter()
        .map(|(api_version, version)| Version {
            api_version: api_version.clone(),
            kind: text(&menu["kind"]),
            base: version["base"].clone(),
            pieces: version["pieces"]
                .as_object()
                .expect("pieces")
                .iter()
                .map(|(path, values)| Piece {
                    path: tree::path(path),
                    values: values.as_array().expect("values").clone(),
                })
                .collect(),
        })
        .collect();
    Subject {
        resource: format!("{}/{plural}", versions[0].api_version),
        plural,
        versions,
        status: menu["status"] == true,
        scale: menu["scale"] == true,
        custom: menu["definition"].is_object(),
        definition: Some(menu["definition"].clone()).filter(Value::is_object),
    }
}

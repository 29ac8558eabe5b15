//! Reads the corpus: a YAML file per family of kinds, with a list of cases, one per resource.

use crate::support::Value;
use bareboat_api::Kind;
use bareboat_builtin::kinds;
use std::path::Path;

/// One file of the corpus.
pub(super) struct Corpus {
    pub(super) file: String,
    pub(super) cases: Vec<Case>,
}

/// The requests for one resource.
pub(super) struct Case {
    /// The resource, such as `apps/v1/deployments`.
    pub(super) resource: String,
    pub(super) kind: Kind,
    pub(super) api_version: String,
    /// Objects that must exist before; their responses are not compared.
    pub(super) needs: Vec<Case>,
    /// Names and contents of objects to create, in order.
    pub(super) objects: Vec<(String, Value)>,
    /// Statuses to put, by object name.
    pub(super) status: Vec<(String, Value)>,
    /// Further steps, in order.
    pub(super) steps: Vec<Value>,
    /// Edits of the first object that make another object, valid or not.
    pub(super) variants: Vec<Value>,
    /// Field selectors for lists.
    pub(super) selectors: Vec<String>,
}

impl Corpus {
    /// Reads all files of a folder.
    pub(super) fn all(folder: &Path) -> Vec<Corpus> {
        let mut all: Vec<Corpus> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "yaml"))
            .map(|path| Corpus::read(&path))
            .collect();
        all.sort_by(|a, b| a.file.cmp(&b.file));
        all
    }

    fn read(path: &Path) -> Corpus {
        let text = std::fs::read(path).unwrap();
        let file = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let parsed = match bareboat_wire::yaml::parse(&text) {
            Ok(parsed) => parsed,
            Err(error) => panic!("{file}: {error}"),
        };
        assert!(
            parsed.duplicates.is_empty(),
            "{file}: {:?}",
            parsed.duplicates
        );
        let cases: Value = serde_json::from_slice(&parsed.value.to_json()).unwrap();
        let cases = cases.as_array().expect("a list of cases");
        Corpus {
            cases: cases.iter().map(|case| Case::read(&file, case)).collect(),
            file,
        }
    }
}

impl Case {
    fn read(file: &str, case: &Value) -> Case {
        let known = [
            "resource",
            "needs",
            "objects",
            "status",
            "steps",
            "variants",
            "selectors",
        ];
        for key in case.as_object().expect("a case").keys() {
            assert!(known.contains(&key.as_str()), "{file}: what is {key}?");
        }
        let resource = case["resource"].as_str().expect("a resource").to_owned();
        let (api_version, plural) = resource.rsplit_once('/').expect("a version and a plural");
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let kind = kinds::find(group, plural).unwrap_or_else(|| panic!("no {resource}"));
        let named = |key: &str| -> Vec<(String, Value)> {
            let members = case[key].as_object().into_iter().flatten();
            members
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect()
        };
        let mut objects = named("objects");
        // Maps are sorted; the simplest object comes first.
        objects.sort_by_key(|(name, _)| !name.contains("min"));
        let list = |key: &str| case[key].as_array().cloned().unwrap_or_default();
        Case {
            api_version: api_version.to_owned(),
            kind,
            needs: (list("needs").iter())
                .map(|need| Case::read(file, need))
                .collect(),
            objects,
            status: named("status"),
            steps: list("steps"),
            variants: list("variants"),
            selectors: list("selectors")
                .iter()
                .map(|text| text.as_str().expect("a selector").to_owned())
                .collect(),
            resource,
        }
    }

    /// Returns the collection path, in a namespace if the kind is namespaced.
    pub(super) fn collection(&self, namespace: &str) -> String {
        let root = if self.api_version.contains('/') {
            "apis"
        } else {
            "api"
        };
        let plural = &self.kind.names.plural;
        match self.kind.namespaced() {
            true => format!(
                "/{root}/{}/namespaces/{namespace}/{plural}",
                self.api_version
            ),
            false => format!("/{root}/{}/{plural}", self.api_version),
        }
    }

    /// Returns an object with its type and name.
    pub(super) fn object(&self, name: &str, content: &Value) -> Value {
        let mut object = content.clone();
        object["apiVersion"] = self.api_version.clone().into();
        object["kind"] = self.kind.names.kind.as_str().into();
        if object["metadata"]["name"].is_null() {
            object["metadata"]["name"] = name.into();
        }
        object
    }
}

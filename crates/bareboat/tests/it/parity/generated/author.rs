//! Generates a sequence of writes to one object.
//!
//! Each write depends on a seed and on the current object, so that two servers that agree get the same writes.

use super::chance::Chance;
use super::directives::decorate;
use super::menu::{Subject, Version};
use super::spoil::{spoil, with_duplicate};
use super::tree::{self, Step};
use crate::support::{APPLY, JSON_PATCH, MERGE, STRATEGIC, Value, json};
use std::collections::HashMap;

const MANAGERS: [&str; 5] = [
    "alpha",
    "beta",
    "gamma",
    "kubectl",
    "kubectl-client-side-apply",
];
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// A generated request.
pub(super) struct Write {
    pub(super) what: String,
    pub(super) method: &'static str,
    /// The suffix of the path of the object or collection: a subresource and a query.
    pub(super) under: &'static str,
    pub(super) query: String,
    pub(super) media: &'static str,
    pub(super) body: String,
}

/// Generates writes to one object by several managers.
pub(super) struct Author<'a> {
    subject: &'a Subject,
    chance: Chance,
    name: String,
    /// The last applied configuration by manager and version.
    applied: HashMap<(&'static str, usize), Value>,
    migrates: bool,
}

impl<'a> Author<'a> {
    pub(super) fn new(subject: &'a Subject, seed: u64, name: String) -> Author<'a> {
        // Subjects with the same seed should differ.
        let salt = subject.resource.bytes().fold(7u64, |sum, byte| {
            sum.wrapping_mul(31).wrapping_add(u64::from(byte))
        });
        let mut chance = Chance::new(seed.wrapping_mul(0x1_0001).wrapping_add(salt));
        let migrates = chance.percent(20);
        Author {
            subject,
            chance,
            name,
            applied: HashMap::new(),
            migrates,
        }
    }

    /// Returns the number of writes.
    pub(super) fn length(&mut self) -> usize {
        8 + self.chance.below(6)
    }

    /// Returns the version of the next write.
    pub(super) fn version(&mut self) -> usize {
        self.chance.below(self.subject.versions.len())
    }

    /// Returns the next write to an object, or its creation.
    pub(super) fn write(&mut self, version: usize, live: Option<&Value>) -> Write {
        let Some(live) = live else {
            return match self.migrates || self.chance.percent(50) {
                true => self.create(version),
                false => self.apply(version, None),
            };
        };
        loop {
            return match self.chance.below(100) {
                0..=33 => self.apply(version, Some(live)),
                34..=48 => self.put(version, live),
                49..=59 => self.merge(version, live),
                60..=67 => self.json(version, live),
                68..=81 if self.subject.custom => continue,
                68..=81 => self.strategic(version, live),
                82..=93 if self.subject.status => self.status(version, live),
                94..=99 if self.subject.scale => self.scale(live),
                _ => continue,
            };
        }
    }

    fn menu(&self, version: usize) -> &'a Version {
        &self.subject.versions[version]
    }

    fn named(&self, version: usize, object: Value) -> Value {
        with_name(self.menu(version), object, &self.name)
    }

    /// Adds some pieces of a menu to a value.
    fn add_pieces(&mut self, version: usize, into: &mut Value, status: bool) {
        let pieces: Vec<_> = self
            .menu(version)
            .pieces
            .iter()
            .filter(|piece| piece.of_status() == status)
            .collect();
        if pieces.is_empty() {
            return;
        }
        for _ in 0..1 + self.chance.below(3) {
            let piece = self.chance.one(&pieces);
            let value = self.chance.one(&piece.values).clone();
            tree::set(into, &piece.path, value);
        }
    }

    fn manager(&mut self) -> &'static str {
        match self.migrates && self.chance.percent(50) {
            true => "kubectl",
            false => self.chance.word(&MANAGERS),
        }
    }

    /// Returns a query that names a manager and sometimes has other options.
    fn query(&mut self, manager: &str) -> String {
        let mut query = format!("?fieldManager={manager}");
        if self.chance.percent(8) {
            query.push_str("&dryRun=All");
        }
        if self.chance.percent(30) {
            let wishes = ["Strict", "Strict", "Warn", "Ignore"];
            query.push_str("&fieldValidation=");
            query.push_str(self.chance.word(&wishes));
        }
        query
    }

    fn text(&mut self, body: &Value) -> String {
        match self.chance.percent(4) {
            true => with_duplicate(&mut self.chance, body),
            false => body.to_string(),
        }
    }

    fn finish(
        &mut self,
        what: &str,
        method: &'static str,
        under: &'static str,
        query: String,
        media: &'static str,
        body: &Value,
    ) -> Write {
        Write {
            what: format!("{what}{under} {}", query.trim_start_matches('?')),
            method,
            under,
            query,
            media,
            body: self.text(body),
        }
    }

    fn create(&mut self, version: usize) -> Write {
        let mut object = self.named(version, self.menu(version).base.clone());
        self.add_pieces(version, &mut object, false);
        if self.chance.percent(20) {
            self.add_pieces(version, &mut object, true);
        }
        if self.chance.percent(20) {
            spoil(&mut self.chance, &mut object, true);
            object = self.named(version, object);
        }
        let manager = match self.migrates {
            true => "kubectl-client-side-apply",
            false => self.manager(),
        };
        if self.migrates {
            let text = format!("{object}\n");
            let path = ["metadata", "annotations", LAST_APPLIED];
            let path = path.map(|name| Step::Member(name.to_owned()));
            tree::set(&mut object, &path, text.into());
        }
        let query = self.query(manager);
        self.finish("create", "POST", "", query, "application/json", &object)
    }

    fn apply(&mut self, version: usize, live: Option<&Value>) -> Write {
        let manager = self.manager();
        let known = self.applied.get(&(manager, version)).cloned();
        let again = known.is_some();
        let mut config = match known {
            Some(config) => config,
            None if live.is_none() || self.chance.percent(25) => self.menu(version).base.clone(),
            None => json!({}),
        };
        if !again || self.chance.percent(70) {
            self.add_pieces(version, &mut config, false);
            for _ in 0..self.chance.below(3) {
                let careless = self.chance.percent(25);
                spoil(&mut self.chance, &mut config, careless);
            }
        }
        let mut config = self.named(version, config);
        if self.chance.percent(3) {
            config["metadata"]["managedFields"] = json!([]);
        }
        // kubectl would repeat the version in its last-applied annotation, where it cannot be compared.
        if self.chance.percent(5)
            && manager != "kubectl"
            && let Some(live) = live
        {
            config["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
        }
        let mut query = self.query(manager);
        if self.chance.percent(45) {
            query.push_str("&force=true");
        }
        self.applied.insert((manager, version), config.clone());
        self.finish("apply", "PATCH", "", query, APPLY, &config)
    }

    /// Changes the managed fields, as some clients do.
    fn meddle(&mut self, object: &mut Value) {
        let metadata = &mut object["metadata"];
        let count = metadata["managedFields"].as_array().map_or(0, Vec::len);
        match self.chance.below(16) {
            0..=3 => {
                if let Some(members) = metadata.as_object_mut() {
                    members.remove("managedFields");
                }
            }
            4 | 5 => metadata["managedFields"] = json!([]),
            6 => metadata["managedFields"] = json!([{}]),
            7 if count > 0 => {
                let at = self.chance.below(count);
                tree::remove(&mut metadata["managedFields"], &[Step::Index(at)]);
            }
            8 if count > 0 => {
                let at = self.chance.below(count);
                metadata["managedFields"][at]["manager"] = "renamed".into();
            }
            9 if count > 0 => {
                let at = self.chance.below(count);
                let fields = &mut metadata["managedFields"][at]["fieldsV1"];
                spoil_fields(&mut self.chance, fields);
            }
            10 if count > 0 => {
                let at = self.chance.below(count);
                metadata["managedFields"][at]["operation"] = "Frob".into();
            }
            _ => {}
        }
    }

    fn put(&mut self, version: usize, live: &Value) -> Write {
        let mut object = live.clone();
        if self.chance.percent(80) {
            self.add_pieces(version, &mut object, false);
        }
        for _ in 0..self.chance.below(3) {
            let careless = self.chance.percent(25);
            spoil(&mut self.chance, &mut object, careless);
        }
        self.meddle(&mut object);
        self.version_of(&mut object);
        let manager = self.manager();
        let query = self.query(manager);
        self.finish("put", "PUT", "", query, "application/json", &object)
    }

    /// Sometimes removes or ages the resource version.
    fn version_of(&mut self, object: &mut Value) {
        match self.chance.below(20) {
            0..=7 => {
                tree::remove(object, &tree::path("metadata/resourceVersion"));
            }
            8 => object["metadata"]["resourceVersion"] = "1".into(),
            9 => object["metadata"]["resourceVersion"] = "0".into(),
            _ => {}
        }
    }

    fn fragment(&mut self, version: usize, status: bool) -> Value {
        let mut patch = json!({});
        self.add_pieces(version, &mut patch, status);
        for _ in 0..self.chance.below(2) {
            let careless = self.chance.percent(25);
            spoil(&mut self.chance, &mut patch, careless);
        }
        patch
    }

    fn merge(&mut self, version: usize, live: &Value) -> Write {
        let mut patch = self.fragment(version, false);
        if self.chance.percent(10) {
            let version = live["metadata"]["resourceVersion"].clone();
            tree::set(&mut patch, &tree::path("metadata/resourceVersion"), version);
        }
        if self.chance.percent(5) {
            let lists = [json!([]), json!(null), json!([{}])];
            let list = self.chance.one(&lists).clone();
            tree::set(&mut patch, &tree::path("metadata/managedFields"), list);
        }
        if self.chance.percent(30) {
            // Remove an existing member.
            let places = tree::places(live);
            let mut place = self.chance.one(&places).clone();
            while place.iter().any(|step| !matches!(step, Step::Member(_))) {
                place.pop();
            }
            if place.len() > 1 {
                tree::set(&mut patch, &place, Value::Null);
            }
        }
        let manager = self.manager();
        let query = self.query(manager);
        self.finish("merge", "PATCH", "", query, MERGE, &patch)
    }

    fn json(&mut self, version: usize, live: &Value) -> Write {
        let mut operations = Vec::new();
        let places = tree::places(live);
        for _ in 0..1 + self.chance.below(3) {
            let place = self.chance.one(&places).clone();
            let at = tree::pointer(live, &place);
            let value = tree::get(live, &place).cloned().unwrap_or_default();
            let piece = self.chance.one(&self.menu(version).pieces);
            let there = tree::pointer(live, &piece.path);
            let new = self.chance.one(&piece.values).clone();
            operations.push(match self.chance.below(20) {
                0..=6 => json!({"op": "add", "path": there, "value": new}),
                7..=9 => json!({"op": "replace", "path": there, "value": new}),
                10..=12 => json!({"op": "remove", "path": at}),
                13 => json!({"op": "test", "path": at, "value": value}),
                14 => json!({"op": "test", "path": at, "value": new}),
                15 => json!({"op": "copy", "from": at, "path": there}),
                16 => json!({"op": "move", "from": at, "path": there}),
                17 => json!({"op": "replace", "path": at, "value": null}),
                18 => json!({"op": "remove", "path": "/metadata/managedFields"}),
                _ => json!({"op": "replace", "path": "/metadata/managedFields", "value": [{}]}),
            });
        }
        let manager = self.manager();
        let query = self.query(manager);
        self.finish("json", "PATCH", "", query, JSON_PATCH, &operations.into())
    }

    fn strategic(&mut self, version: usize, live: &Value) -> Write {
        let mut patch = self.fragment(version, false);
        let odds = [0, 8, 20][self.chance.below(3)];
        decorate(&mut self.chance, &mut patch, live, odds);
        let manager = self.manager();
        let query = self.query(manager);
        self.finish("strategic", "PATCH", "", query, STRATEGIC, &patch)
    }

    fn status(&mut self, version: usize, live: &Value) -> Write {
        let manager = self.manager();
        let mut query = self.query(manager);
        let mut patch = self.fragment(version, true);
        if self.chance.percent(30) {
            self.add_pieces(version, &mut patch, false);
        }
        let (what, method, media, body) = match self.chance.below(4) {
            0 => {
                let mut object = live.clone();
                self.add_pieces(version, &mut object, true);
                if self.chance.percent(30) {
                    self.add_pieces(version, &mut object, false);
                }
                self.meddle(&mut object);
                self.version_of(&mut object);
                ("put", "PUT", "application/json", object)
            }
            1 => ("merge", "PATCH", MERGE, patch),
            2 if !self.subject.custom => {
                decorate(&mut self.chance, &mut patch, live, 8);
                ("strategic", "PATCH", STRATEGIC, patch)
            }
            _ => {
                if self.chance.percent(50) {
                    query.push_str("&force=true");
                }
                ("apply", "PATCH", APPLY, self.named(version, patch))
            }
        };
        self.finish(what, method, "/status", query, media, &body)
    }

    fn scale(&mut self, live: &Value) -> Write {
        let manager = self.manager();
        let mut query = self.query(manager);
        let replicas = *self.chance.one(&[0, 1, 2, 5, -1]);
        let mut scale = json!({
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {"name": self.name},
            "spec": {"replicas": replicas},
        });
        let (what, method, media) = match self.chance.below(3) {
            0 => {
                let metadata = &live["metadata"];
                scale["metadata"]["namespace"] = metadata["namespace"].clone();
                if self.chance.percent(50) {
                    scale["metadata"]["resourceVersion"] = metadata["resourceVersion"].clone();
                }
                ("put", "PUT", "application/json")
            }
            1 => {
                scale = json!({"spec": {"replicas": replicas}});
                ("merge", "PATCH", MERGE)
            }
            _ => {
                if self.chance.percent(50) {
                    query.push_str("&force=true");
                }
                ("apply", "PATCH", APPLY)
            }
        };
        self.finish(what, method, "/scale", query, media, &scale)
    }
}

/// Adds type and name to an object.
pub(super) fn with_name(version: &Version, mut object: Value, name: &str) -> Value {
    object["apiVersion"] = version.api_version.as_str().into();
    object["kind"] = version.kind.as_str().into();
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    object["metadata"]["name"] = name.into();
    object
}

/// Adds or removes a field.
fn spoil_fields(chance: &mut Chance, fields: &mut Value) {
    match chance.below(3) {
        0 => fields["f:metadata"]["f:labels"]["f:imagined"] = json!({}),
        1 => *fields = json!({"nonsense": {}}),
        _ => {
            let places = tree::places(fields);
            if !places.is_empty() {
                let place = chance.one(&places).clone();
                tree::remove(fields, &place);
            }
        }
    }
}

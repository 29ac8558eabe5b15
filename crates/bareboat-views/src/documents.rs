//! Discovery of a view, in the legacy and in the aggregated format.

use crate::members::{Fleet, Member};
use crate::types::{Groups, Shown, union};
use bareboat_api::{Map, Value, value};
use bareboat_server::discovery::compare_versions;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The verbs of all members together.
const MERGED: [&str; 3] = ["get", "list", "watch"];
/// The verbs of one member, which answers writes itself.
const ONE: [&str; 8] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

/// The types of a view, for its documents.
pub(crate) struct Documents {
    groups: Groups,
    verbs: &'static [&'static str],
}

impl Documents {
    /// The documents of one member, or of all.
    pub(crate) fn of(fleet: &Fleet, member: Option<&Arc<Member>>) -> Documents {
        match member {
            Some(member) => Documents {
                groups: union(std::iter::once(member)),
                verbs: &ONE,
            },
            None => Documents {
                groups: union(fleet.members.values()),
                verbs: &MERGED,
            },
        }
    }

    /// Returns the legacy document at a path, such as `apis/apps/v1`.
    pub(crate) fn legacy(&self, path: &[String], host: &str) -> Option<Value> {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        Some(match path.as_slice() {
            ["api"] => {
                let core = self.groups.get("").map(versions).unwrap_or_default();
                let core: Value = core.into_iter().map(Value::string).collect();
                value!({
                    "kind": "APIVersions", "versions": (core),
                    "serverAddressByClientCIDRs": [
                        {"clientCIDR": "0.0.0.0/0", "serverAddress": host},
                    ],
                })
            }
            ["apis"] => {
                let groups: Vec<Value> = self
                    .named()
                    .map(|(name, types)| group(name, types))
                    .collect();
                value!({"kind": "APIGroupList", "apiVersion": "v1", "groups": (groups)})
            }
            ["apis", name] => {
                let types = self.groups.get(*name).filter(|_| !name.is_empty())?;
                let mut document = group(name, types);
                let members = document.make_object();
                members.insert("kind", value!("APIGroup"));
                members.insert("apiVersion", value!("v1"));
                document
            }
            ["api", version] => self.resources("", version)?,
            ["apis", name, version] if !name.is_empty() => self.resources(name, version)?,
            _ => return None,
        })
    }

    /// Returns the aggregated document of `api` or `apis`.
    pub(crate) fn aggregated(&self, core: bool) -> Value {
        let groups = self
            .groups
            .iter()
            .filter(|(name, _)| name.is_empty() == core);
        let items: Vec<Value> = groups
            .map(|(name, types)| {
                let versions: Vec<Value> = versions(types)
                    .iter()
                    .map(|version| {
                        let shown = in_version(types, version);
                        let resources: Vec<Value> = shown
                            .map(|one| self.aggregated_resource(one, version))
                            .collect();
                        value!({
                            "version": (version.as_str()), "freshness": "Current",
                            "resources": (resources),
                        })
                    })
                    .collect();
                let mut metadata = Map::new();
                if !name.is_empty() {
                    metadata.insert("name", Value::string(name));
                }
                value!({"metadata": (Value::Object(metadata)), "versions": (versions)})
            })
            .collect();
        value!({
            "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {}, "items": (items),
        })
    }

    fn named(&self) -> impl Iterator<Item = (&String, &BTreeMap<String, Shown>)> {
        self.groups.iter().filter(|(name, _)| !name.is_empty())
    }

    fn resources(&self, group: &str, version: &str) -> Option<Value> {
        let types = self.groups.get(group)?;
        if !versions(types).iter().any(|known| known == version) {
            return None;
        }
        let resources: Vec<Value> = in_version(types, version)
            .map(|one| {
                let mut members = Map::new();
                members.insert("name", Value::string(&one.synced.resource));
                members.insert("singularName", Value::string(&one.synced.singular));
                members.insert("namespaced", Value::Bool(one.synced.namespaced));
                members.insert("kind", Value::string(&one.synced.kind));
                self.common(one, &mut members);
                Value::Object(members)
            })
            .collect();
        let group_version = match group {
            "" => version.to_owned(),
            group => format!("{group}/{version}"),
        };
        Some(value!({
            "kind": "APIResourceList", "apiVersion": "v1",
            "groupVersion": (group_version), "resources": (resources),
        }))
    }

    fn aggregated_resource(&self, one: &Shown, version: &str) -> Value {
        let scope = match one.synced.namespaced {
            true => "Namespaced",
            false => "Cluster",
        };
        let mut members = Map::new();
        members.insert("resource", Value::string(&one.synced.resource));
        members.insert(
            "responseKind",
            value!({
                "group": (one.synced.group.as_str()), "version": version,
                "kind": (one.synced.kind.as_str()),
            }),
        );
        members.insert("scope", Value::string(scope));
        members.insert("singularResource", Value::string(&one.synced.singular));
        self.common(one, &mut members);
        Value::Object(members)
    }

    fn common(&self, one: &Shown, members: &mut Map) {
        let verbs: Value = self.verbs.iter().map(Value::string).collect();
        members.insert("verbs", verbs);
        for (key, texts) in [
            ("shortNames", &one.synced.short_names),
            ("categories", &one.synced.categories),
        ] {
            if !texts.is_empty() {
                members.insert(key, texts.iter().map(Value::string).collect());
            }
        }
    }
}

fn in_version<'t>(
    types: &'t BTreeMap<String, Shown>,
    version: &'t str,
) -> impl Iterator<Item = &'t Shown> {
    let types = types.values();
    types.filter(move |one| one.versions.iter().any(|known| known == version))
}

/// Returns the versions of a group, the preferred one first.
fn versions(types: &BTreeMap<String, Shown>) -> Vec<String> {
    let mut all: Vec<String> = types
        .values()
        .flat_map(|one| one.versions.clone())
        .collect();
    all.sort_by(|a, b| compare_versions(a, b));
    all.dedup();
    all
}

fn group(name: &str, types: &BTreeMap<String, Shown>) -> Value {
    let described = |version: &String| {
        value!({
            "groupVersion": (format!("{name}/{version}")), "version": (version.as_str()),
        })
    };
    let versions = versions(types);
    let preferred = versions.first().map_or(Value::Null, described);
    let versions: Vec<Value> = versions.iter().map(described).collect();
    value!({"name": name, "versions": (versions), "preferredVersion": (preferred)})
}

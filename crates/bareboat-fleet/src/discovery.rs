//! What a member serves: its discovery documents, in the aggregated form or in the older one.
//!
//! Members may be broken or lie, so every document has a limit, and names that cannot be part of a URL are left out.

use crate::api::{MemberApi, MemberError, fetch};
use crate::types::TypeKey;
use bareboat_api::{Value, names};
use std::collections::BTreeSet;
use std::time::Duration;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
/// The largest document.
const LARGEST: usize = 16 << 20;
/// The most resources of a member.
const MOST: usize = 20_000;
/// The most short names of a resource, and the most categories.
const MOST_NAMES: usize = 16;
/// The most groups and versions that are asked for one by one.
const MOST_VERSIONS: usize = 1000;

/// A resource that a member serves in one version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ApiResource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) resource: String,
    pub(crate) kind: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    pub(crate) verbs: Vec<String>,
}

impl ApiResource {
    pub(crate) fn key(&self) -> TypeKey {
        (self.group.clone(), self.resource.clone())
    }

    /// Returns whether the plural, the singular or the kind is a name, in any case.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        let own = [&self.resource, &self.singular, &self.kind];
        own.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    pub(crate) fn can_be_synced(&self) -> bool {
        let has = |verb: &str| self.verbs.iter().any(|known| known == verb);
        has("list") && has("watch")
    }

    pub(crate) fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// The path of all objects, or of those in a namespace.
    pub(crate) fn path(&self, namespace: Option<&str>) -> String {
        let root = match self.group.as_str() {
            "" => format!("/api/{}", self.version),
            group => format!("/apis/{group}/{}", self.version),
        };
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => format!("{root}/namespaces/{namespace}/{}", self.resource),
            None => format!("{root}/{}", self.resource),
        }
    }
}

/// What a member serves.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Discovered {
    /// Resources in order of preference of their versions.
    pub(crate) resources: Vec<ApiResource>,
    /// Groups whose resources are not all known. Nothing is concluded from their absence.
    pub(crate) incomplete: BTreeSet<String>,
}

impl Discovered {
    /// Returns whether a type is absent for certain.
    pub(crate) fn lacks(&self, key: &TypeKey) -> bool {
        !self.incomplete.contains(&key.0)
            && !self
                .resources
                .iter()
                .any(|one| one.group == key.0 && one.resource == key.1)
    }
}

/// Asks a member what it serves. An error means that nothing is known.
pub(crate) async fn discover(
    api: &dyn MemberApi,
    patience: Duration,
) -> Result<Discovered, MemberError> {
    let mut discovered = Discovered::default();
    for path in ["/api", "/apis"] {
        let document = fetch(api, path, AGGREGATED, LARGEST, patience).await?;
        match document.get("kind").and_then(Value::as_str) {
            Some("APIGroupDiscoveryList") => aggregated(&document, &mut discovered),
            Some("APIVersions") => {
                let versions = texts(&document, "versions");
                for version in versions {
                    listed(api, "", &version, &mut discovered, patience).await;
                }
            }
            Some("APIGroupList") => groups(api, &document, &mut discovered, patience).await,
            _ => {
                return Err(MemberError::Garbage(format!(
                    "{path} is no discovery document"
                )));
            }
        }
    }
    if discovered.resources.is_empty() {
        return Err(MemberError::Garbage(
            "discovery names no resources".to_owned(),
        ));
    }
    Ok(discovered)
}

async fn groups(api: &dyn MemberApi, document: &Value, out: &mut Discovered, patience: Duration) {
    let groups = document
        .get("groups")
        .and_then(Value::as_array)
        .unwrap_or_default();
    let mut asked = 0;
    for group in groups {
        let Some(name) = group.get("name").and_then(Value::as_str) else {
            continue;
        };
        let versions = group
            .get("versions")
            .and_then(Value::as_array)
            .unwrap_or_default();
        for version in versions {
            let Some(version) = version.get("version").and_then(Value::as_str) else {
                continue;
            };
            asked += 1;
            if asked > MOST_VERSIONS {
                out.incomplete.insert(name.to_owned());
                continue;
            }
            listed(api, name, version, out, patience).await;
        }
    }
}

/// Reads the resources of one group and version, in the older form.
async fn listed(
    api: &dyn MemberApi,
    group: &str,
    version: &str,
    out: &mut Discovered,
    patience: Duration,
) {
    if !is_part(version) || !(group.is_empty() || names::is_dns1123_subdomain(group)) {
        return;
    }
    let path = match group {
        "" => format!("/api/{version}"),
        group => format!("/apis/{group}/{version}"),
    };
    let document = match fetch(api, &path, "application/json", LARGEST, patience).await {
        Ok(document) => document,
        Err(_) => {
            out.incomplete.insert(group.to_owned());
            return;
        }
    };
    let resources = document
        .get("resources")
        .and_then(Value::as_array)
        .unwrap_or_default();
    for resource in resources {
        let text = |key: &str| {
            resource
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or("")
                .to_owned()
        };
        push(
            out,
            ApiResource {
                group: group.to_owned(),
                version: version.to_owned(),
                resource: text("name"),
                kind: text("kind"),
                singular: text("singularName"),
                short_names: texts(resource, "shortNames"),
                categories: texts(resource, "categories"),
                namespaced: resource.get("namespaced") == Some(&Value::Bool(true)),
                verbs: texts(resource, "verbs"),
            },
        );
    }
}

/// Reads the aggregated form.
fn aggregated(document: &Value, out: &mut Discovered) {
    let groups = document
        .get("items")
        .and_then(Value::as_array)
        .unwrap_or_default();
    for group in groups {
        let name = group
            .at(&["metadata", "name"])
            .and_then(Value::as_str)
            .unwrap_or("");
        let versions = group
            .get("versions")
            .and_then(Value::as_array)
            .unwrap_or_default();
        for version in versions {
            let text = version.get("version").and_then(Value::as_str).unwrap_or("");
            if version.get("freshness").and_then(Value::as_str) == Some("Stale") {
                out.incomplete.insert(name.to_owned());
            }
            let resources = version
                .get("resources")
                .and_then(Value::as_array)
                .unwrap_or_default();
            for resource in resources {
                let own = |key: &str| {
                    resource
                        .get(key)
                        .and_then(Value::as_str)
                        .unwrap_or("")
                        .to_owned()
                };
                let kind = resource
                    .at(&["responseKind", "kind"])
                    .and_then(Value::as_str);
                push(
                    out,
                    ApiResource {
                        group: name.to_owned(),
                        version: text.to_owned(),
                        resource: own("resource"),
                        kind: kind.unwrap_or("").to_owned(),
                        singular: own("singularResource"),
                        short_names: texts(resource, "shortNames"),
                        categories: texts(resource, "categories"),
                        namespaced: own("scope") == "Namespaced",
                        verbs: texts(resource, "verbs"),
                    },
                );
            }
        }
    }
}

/// Adds a resource whose names can be parts of URLs and columns.
fn push(out: &mut Discovered, mut resource: ApiResource) {
    let group = &resource.group;
    let is_group = group.is_empty() || names::is_dns1123_subdomain(group);
    let kind = &resource.kind;
    let is_kind = !kind.is_empty()
        && kind.len() < 128
        && kind.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let parts = is_part(&resource.version) && is_part(&resource.resource);
    if !is_group || !is_kind || !parts || out.resources.len() >= MOST {
        return;
    }
    if resource.singular.is_empty() {
        resource.singular = resource.kind.to_lowercase();
    }
    for names in [&mut resource.short_names, &mut resource.categories] {
        names.retain(|name| is_part(name));
        names.truncate(MOST_NAMES);
    }
    out.resources.push(resource);
}

fn is_part(text: &str) -> bool {
    let common = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.len() < 128 && text.bytes().all(common)
}

fn texts(from: &Value, key: &str) -> Vec<String> {
    let list = from.get(key).and_then(Value::as_array).unwrap_or_default();
    list.iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

//! Aggregated discovery (`apidiscovery.k8s.io/v2`): everything in one document per root.

use super::legacy::insert_texts;
use super::{Content, Discovery, Group, GroupVersion, subresources, verbs};
use bareboat_api::kind::{DiscoveryStyle, Subresource, Verb, Version};
use bareboat_api::{Kind, Map, Value, value};
use ring::digest::{SHA512, digest};
use std::fmt::Write as _;

/// An `APIGroupDiscoveryList`, ready to be sent.
#[derive(Clone, Debug)]
pub struct AggregatedList {
    /// The APIGroupDiscoveryList.
    pub value: Value,
    /// The list as JSON.
    pub json: Vec<u8>,
    /// The entity tag of the list, quotes included.
    pub etag: String,
}

impl Discovery {
    /// `/api`: the core group.
    pub fn aggregated_core(&self) -> AggregatedList {
        list(self.find("").into_iter())
    }

    /// `/apis`: all groups but core.
    pub fn aggregated_groups(&self) -> AggregatedList {
        list(self.named())
    }
}

fn list<'a>(groups: impl Iterator<Item = &'a Group>) -> AggregatedList {
    let items: Vec<Value> = groups.map(group).collect();
    let value = value!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    });
    let json = super::print(&value, false);
    let etag = entity_tag(&json);
    AggregatedList { value, json, etag }
}

/// Returns the entity tag of a document: the SHA-512 of its bytes in upper-case hexadecimal, in quotes.
pub fn entity_tag(bytes: &[u8]) -> String {
    let digest = digest(&SHA512, bytes);
    let digest = digest.as_ref();
    let mut tag = String::with_capacity(2 * digest.len() + 2);
    tag.push('"');
    for byte in digest {
        let _ = write!(tag, "{byte:02X}");
    }
    tag.push('"');
    tag
}

fn group(group: &Group) -> Value {
    let mut metadata = Map::new();
    if !group.name.is_empty() {
        metadata.insert("name", group.name.clone().into());
    }
    let versions: Vec<Value> = group.versions.iter().map(version).collect();
    value!({"metadata": metadata, "versions": versions})
}

fn version(version: &GroupVersion) -> Value {
    let mut members = Map::new();
    members.insert("version", version.name.clone().into());
    let (freshness, resources) = match &version.content {
        Content::Local(kinds) => {
            let resources = kinds
                .iter()
                .map(|(kind, index)| resource(kind, &kind.versions[*index]))
                .collect();
            ("Current", Some(resources))
        }
        Content::Remote(Some(resources)) => ("Current", Some(Value::Array(resources.clone()))),
        Content::Remote(None) => ("Stale", None),
    };
    members.insert("freshness", freshness.into());
    if let Some(resources) = resources {
        members.insert("resources", resources);
    }
    Value::Object(members)
}

fn resource(kind: &Kind, version: &Version) -> Value {
    let mut members = Map::new();
    members.insert("resource", kind.names.plural.clone().into());
    members.insert("responseKind", response_kind(kind, version, None));
    let scope = if kind.namespaced() {
        "Namespaced"
    } else {
        "Cluster"
    };
    members.insert("scope", scope.into());
    members.insert("singularResource", kind.names.singular.clone().into());
    members.insert("verbs", verbs(kind));
    insert_texts(&mut members, "shortNames", &kind.names.short);
    insert_texts(&mut members, "categories", &kind.names.categories);
    let parts: Vec<Value> = subresources(kind, version)
        .into_iter()
        .map(|sub| subresource(kind, version, sub))
        .collect();
    if !parts.is_empty() {
        members.insert("subresources", parts.into());
    }
    Value::Object(members)
}

fn subresource(kind: &Kind, version: &Version, sub: &Subresource) -> Value {
    let names: Value = sub.verbs.iter().map(Verb::name).collect();
    value!({
        "subresource": (sub.name.clone()),
        "responseKind": (response_kind(kind, version, Some(sub))),
        "verbs": names,
    })
}

/// Returns the kind that a resource returns; never null, because clients access it without a check.
///
/// An empty group and version mean those of the parent.
fn response_kind(kind: &Kind, version: &Version, sub: Option<&Subresource>) -> Value {
    let own = (&kind.group, &version.name, &kind.names.kind);
    let (group, response_version, name) = match sub.and_then(|sub| sub.response.as_ref()) {
        Some((group, version, name)) => (group, version, name),
        None => own,
    };
    let sorted = kind.conventions.discovery == DiscoveryStyle::Sorted;
    if sorted && (group, response_version) == (own.0, own.1) {
        return value!({"group": "", "version": "", "kind": (name.clone())});
    }
    value!({
        "group": (group.clone()),
        "version": (response_version.clone()),
        "kind": (name.clone()),
    })
}

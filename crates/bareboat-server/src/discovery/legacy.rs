//! Legacy discovery documents: `/api`, `/apis`, `/apis/G`, `/api/v1` and `/apis/G/V`.
//!
//! Members are named as the `meta/v1` messages name them, so that the same values encode to JSON,
//! YAML and protobuf.

use super::{Content, Discovery, Group, GroupVersion, subresources, verbs};
use bareboat_api::kind::{Subresource, Verb, Version};
use bareboat_api::{Kind, Map, Str, Value, value};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use sha2::{Digest as _, Sha256};

impl Discovery {
    /// `/api`: the versions of the core group. `server_address` is the address clients use for this server.
    pub fn api_versions(&self, server_address: &str) -> Value {
        let versions: Value = self
            .find("")
            .map(|core| core.versions.as_slice())
            .unwrap_or_default()
            .iter()
            .map(|version| version.name.clone())
            .collect();
        value!({
            "kind": "APIVersions",
            "versions": versions,
            "serverAddressByClientCIDRs": [
                {"clientCIDR": "0.0.0.0/0", "serverAddress": server_address},
            ],
        })
    }

    /// `/apis`: all groups but core.
    pub fn group_list(&self) -> Value {
        let groups: Vec<Value> = self
            .named()
            .map(|group| Value::Object(described_group(group)))
            .collect();
        value!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
    }

    /// `/apis/G`: one group.
    pub fn group(&self, name: &str) -> Option<Value> {
        let group = self.named().find(|group| group.name == name)?;
        let mut members = described_group(group);
        members.insert("kind", value!("APIGroup"));
        members.insert("apiVersion", value!("v1"));
        Some(Value::Object(members))
    }

    /// `/api/V` and `/apis/G/V`: the resources of one version.
    ///
    /// Returns `None` for a version of another server, which answers itself.
    pub fn resources(&self, group: &str, version: &str) -> Option<Value> {
        let found = self.find(group)?;
        let version = found.versions.iter().find(|known| known.name == version)?;
        let Content::Local(kinds) = &version.content else {
            return None;
        };
        let mut resources = Vec::new();
        for (kind, index) in kinds {
            let version = &kind.versions[*index];
            resources.push(resource(kind));
            for sub in subresources(kind, version) {
                resources.push(subresource(kind, version, sub));
            }
        }
        let mut list = value!({
            "kind": "APIResourceList",
            "groupVersion": (group_version(&found.name, &version.name)),
            "resources": resources,
        });
        // Upstream omits the member for the core group only.
        if !group.is_empty() {
            list.make_object().insert("apiVersion", value!("v1"));
        }
        Some(list)
    }
}

fn group_version(group: &str, version: &str) -> Str {
    if group.is_empty() {
        Str::new(version)
    } else {
        Str::new(format!("{group}/{version}"))
    }
}

fn described_group(group: &Group) -> Map {
    let describe = |version: &GroupVersion| {
        value!({
            "groupVersion": (group_version(&group.name, &version.name)),
            "version": (version.name.clone()),
        })
    };
    // The preferred version is the first usable one.
    let preferred = group
        .versions
        .iter()
        .find(|version| !matches!(version.content, Content::Remote(None)))
        .or(group.versions.first());
    let mut members = Map::new();
    members.insert("name", group.name.clone().into());
    members.insert("versions", group.versions.iter().map(describe).collect());
    if let Some(preferred) = preferred {
        members.insert("preferredVersion", describe(preferred));
    }
    members
}

fn resource(kind: &Kind) -> Value {
    let mut members = Map::new();
    members.insert("name", kind.names.plural.clone().into());
    members.insert("singularName", kind.names.singular.clone().into());
    members.insert("namespaced", kind.namespaced().into());
    members.insert("kind", kind.names.kind.clone().into());
    members.insert("verbs", verbs(kind));
    insert_texts(&mut members, "shortNames", &kind.names.short);
    insert_texts(&mut members, "categories", &kind.names.categories);
    if let Some(hash) = storage_version_hash(kind) {
        members.insert("storageVersionHash", hash.into());
    }
    Value::Object(members)
}

fn subresource(kind: &Kind, version: &Version, sub: &Subresource) -> Value {
    let mut members = Map::new();
    members.insert("name", format!("{}/{}", kind.names.plural, sub.name).into());
    members.insert("singularName", value!(""));
    members.insert("namespaced", kind.namespaced().into());
    members.insert("verbs", sub.verbs.iter().map(Verb::name).collect());
    let mut name = &kind.names.kind;
    if let Some((group, response_version, response)) = &sub.response {
        name = response;
        if (group, response_version) != (&kind.group, &version.name) {
            if !group.is_empty() {
                members.insert("group", group.clone().into());
            }
            members.insert("version", response_version.clone().into());
        }
    }
    members.insert("kind", name.clone().into());
    Value::Object(members)
}

/// Inserts a list of texts unless it is empty.
pub(super) fn insert_texts(members: &mut Map, name: &'static str, texts: &[Str]) {
    if !texts.is_empty() {
        members.insert(name, texts.iter().cloned().collect());
    }
}

/// Returns a hash that changes with the storage version; migration tools compare it.
///
/// Kinds that are not stored have none; they are the kinds without watch.
fn storage_version_hash(kind: &Kind) -> Option<String> {
    if !kind.verbs.has(Verb::Watch) || kind.storage_api_version.is_empty() {
        return None;
    }
    // Core objects are hashed under the empty group: `/v1/ConfigMap`.
    let separator = if kind.storage_api_version.contains('/') {
        ""
    } else {
        "/"
    };
    let text = format!(
        "{separator}{}/{}",
        kind.storage_api_version, kind.storage_kind
    );
    Some(BASE64.encode(&Sha256::digest(text)[..8]))
}

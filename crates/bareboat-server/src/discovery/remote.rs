//! Reads what other servers say of themselves, in the old form or the aggregated one.
//!
//! Entries that are not of the right form are left out: one odd server must not spoil the list
//! that clients read for all.

use bareboat_api::{Map, Value, value};

/// The resources of one version out of another server's `APIGroupDiscoveryList`.
///
/// Nothing if the list does not have the version, or does not vouch for it.
pub fn aggregated_resources(list: &Value, group: &str, version: &str) -> Option<Vec<Value>> {
    let groups = list.get("items")?.as_array()?;
    let found = groups
        .iter()
        .filter(|item| text(item.at(&["metadata", "name"])) == group)
        .flat_map(|item| elements(item.get("versions")))
        .find(|item| text(item.get("version")) == version)?;
    if text(found.get("freshness")) == "Stale" {
        return None;
    }
    let mut resources = Vec::new();
    for resource in elements(found.get("resources")) {
        if text(resource.get("resource")).is_empty() {
            continue;
        }
        let mut resource = resource.clone();
        insert_response_kind(&mut resource);
        if let Some(Value::Array(parts)) = resource.make_object().get_mut("subresources") {
            parts.retain(|part| !text(part.get("subresource")).is_empty());
            parts.iter_mut().for_each(insert_response_kind);
        }
        resources.push(resource);
    }
    Some(resources)
}

/// The resources out of another server's `APIResourceList`, in the aggregated form.
pub fn listed_resources(list: &Value) -> Option<Vec<Value>> {
    let entries = list.get("resources")?.as_array()?;
    let mut resources: Vec<Value> = Vec::new();
    let parent = |resources: &[Value], name: &str| {
        resources
            .iter()
            .position(|known| text(known.get("resource")) == name)
    };
    // Two rounds, because a subresource may be listed before its resource.
    for entry in entries {
        let name = text(entry.get("name"));
        if !name.is_empty() && !name.contains('/') && parent(&resources, name).is_none() {
            resources.push(resource(name, entry));
        }
    }
    for entry in entries {
        let Some((name, part)) = text(entry.get("name")).split_once('/') else {
            continue;
        };
        if name.is_empty() || part.is_empty() {
            continue;
        }
        let index = parent(&resources, name).unwrap_or_else(|| {
            // A part of something that has no entry of its own: the parent is listed without a
            // kind, and can do nothing.
            let mut bare = resource(name, entry);
            bare.make_object().insert("verbs", value!([]));
            bare.make_object().insert("responseKind", value!({}));
            resources.push(bare);
            resources.len() - 1
        });
        let parts = resources[index]
            .make_object()
            .entry_or_insert_with("subresources", || Value::Array(Vec::new()));
        if let Some(parts) = parts.as_array_mut() {
            parts.push(value!({
                "subresource": part,
                "responseKind": (response_kind(entry)),
                "verbs": (texts(entry.get("verbs"))),
            }));
        }
    }
    Some(resources)
}

fn resource(name: &str, entry: &Value) -> Value {
    let namespaced = entry.get("namespaced").and_then(Value::as_bool) == Some(true);
    let mut members = Map::new();
    members.insert("resource", name.into());
    members.insert("responseKind", response_kind(entry));
    let scope = if namespaced { "Namespaced" } else { "Cluster" };
    members.insert("scope", scope.into());
    members.insert("singularResource", text(entry.get("singularName")).into());
    members.insert("verbs", texts(entry.get("verbs")));
    for name in ["shortNames", "categories"] {
        if let Some(list) = entry.get(name) {
            members.insert(name, texts(Some(list)));
        }
    }
    Value::Object(members)
}

fn response_kind(entry: &Value) -> Value {
    value!({
        "group": (text(entry.get("group"))),
        "version": (text(entry.get("version"))),
        "kind": (text(entry.get("kind"))),
    })
}

/// Clients look into the kind unasked, so there must be one.
fn insert_response_kind(entry: &mut Value) {
    let members = entry.make_object();
    if members.get("responseKind").is_none_or(Value::is_null) {
        members.insert("responseKind", value!({}));
    }
}

fn text(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
}

fn elements(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).unwrap_or_default()
}

fn texts(value: Option<&Value>) -> Value {
    elements(value).iter().filter_map(Value::as_str).collect()
}

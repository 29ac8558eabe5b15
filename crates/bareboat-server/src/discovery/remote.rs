//! Parses the discovery documents of other servers, legacy or aggregated.
//!
//! Invalid entries are skipped: one faulty server must not break the list for all clients.

use bareboat_api::{Map, Str, Value, value};
use std::collections::HashMap;

/// Returns the resources of all versions in another server's `APIGroupDiscoveryList`, by group and version. Stale versions
/// are left out.
pub fn aggregated_resources(list: &Value) -> Vec<((Str, Str), Vec<Value>)> {
    let mut all = Vec::new();
    for item in elements(list.get("items")) {
        let group = Str::new(text(item.at(&["metadata", "name"])));
        for version in elements(item.get("versions")) {
            if text(version.get("freshness")) != "Stale" {
                let name = Str::new(text(version.get("version")));
                all.push(((group.clone(), name), resources_of(version)));
            }
        }
    }
    all
}

fn resources_of(found: &Value) -> Vec<Value> {
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
    resources
}

/// Converts another server's `APIResourceList` to aggregated resources.
pub fn listed_resources(list: &Value) -> Option<Vec<Value>> {
    let entries = list.get("resources")?.as_array()?;
    let mut resources: Vec<Value> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    // In two passes, because a subresource may be listed before its resource.
    for entry in entries {
        let name = text(entry.get("name"));
        if !name.is_empty() && !name.contains('/') && !places.contains_key(name) {
            places.insert(name, resources.len());
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
        let index = *places.entry(name).or_insert_with(|| {
            // A subresource whose parent has no entry: the parent is listed without a kind and without verbs.
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

/// Clients access the kind without a check, so it must be present.
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

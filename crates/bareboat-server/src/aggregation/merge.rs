//! Merges OpenAPI 2 documents of other servers into the document of this one.

use super::refresh::RemoteV2;
use bareboat_api::{Map, Value};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};

const REFERENCE: &str = "#/definitions/";

/// Returns the hash of the merged document.
pub(crate) fn hash_v2(own: String, remotes: &[RemoteV2]) -> String {
    if remotes.is_empty() {
        return own;
    }
    let mut digest = Sha256::new_with_prefix(&own);
    for remote in remotes {
        digest.update(&*remote.hash);
        for root in &remote.roots {
            digest.update(root);
        }
    }
    let digest = digest.finalize();
    digest.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// Replaces the paths of group versions that other servers serve, and adds the definitions they need. A definition that differs from one of the
/// same name gets another name.
pub(crate) fn merge_v2(mut base: Value, remotes: &[RemoteV2]) -> Value {
    let members = base.make_object();
    let mut paths = take(members, "paths");
    let mut definitions = take(members, "definitions");
    for remote in remotes {
        let is_own = |path: &str| remote.roots.iter().any(|root| is_below(path, root));
        // Kinds of this server that the other one hides.
        let hidden: Vec<String> = paths
            .keys()
            .filter(|path| is_own(path))
            .map(str::to_owned)
            .collect();
        for path in hidden {
            paths.remove(&path);
        }
        let own = remote.document.get("paths").and_then(Value::as_object);
        let own: Vec<(&str, &Value)> = own
            .into_iter()
            .flat_map(Map::iter)
            .filter(|(path, _)| is_own(path))
            .collect();
        let offered = remote
            .document
            .get("definitions")
            .and_then(Value::as_object);
        let mut wanted = BTreeSet::new();
        for (_, item) in &own {
            collect(item, offered, &mut wanted);
        }
        let mut renamed: BTreeMap<String, String> = BTreeMap::new();
        for name in &wanted {
            let offered = offered.and_then(|all| all.get(name));
            if let Some(known) = definitions.get(name)
                && Some(known) != offered
            {
                renamed.insert(name.clone(), free_name(name, &definitions, offered));
            }
        }
        for name in &wanted {
            let Some(definition) = offered.and_then(|all| all.get(name)) else {
                continue;
            };
            let mut definition = definition.clone();
            rename(&mut definition, &renamed);
            let name = renamed.get(name).unwrap_or(name);
            definitions.insert(name.as_str(), definition);
        }
        for (path, item) in own {
            let mut item = item.clone();
            rename(&mut item, &renamed);
            paths.insert(path, item);
        }
    }
    let members = base.make_object();
    members.insert("paths", Value::Object(paths));
    members.insert("definitions", Value::Object(definitions));
    base
}

fn take(members: &mut Map, name: &str) -> Map {
    match members.remove(name) {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

pub(super) fn is_below(path: &str, root: &str) -> bool {
    path.strip_prefix(root)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Collects the names of the definitions that a value refers to, directly or not.
pub(super) fn collect(value: &Value, offered: Option<&Map>, wanted: &mut BTreeSet<String>) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(members) => {
                if let Some(name) = members.get("$ref").and_then(reference)
                    && wanted.insert(name.to_owned())
                {
                    open.extend(offered.and_then(|all| all.get(name)));
                }
                open.extend(members.iter().map(|(_, member)| member));
            }
            _ => {}
        }
    }
}

fn reference(value: &Value) -> Option<&str> {
    value.as_str()?.strip_prefix(REFERENCE)
}

fn free_name(name: &str, taken: &Map, same: Option<&Value>) -> String {
    let mut number = 2;
    loop {
        let candidate = format!("{name}_v{number}");
        match taken.get(&candidate) {
            Some(known) if Some(known) != same => number += 1,
            _ => return candidate,
        }
    }
}

fn rename(value: &mut Value, renamed: &BTreeMap<String, String>) {
    if renamed.is_empty() {
        return;
    }
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, renamed)),
        Value::Object(members) => {
            let to = members.get("$ref").and_then(reference);
            if let Some(name) = to.and_then(|name| renamed.get(name)) {
                let text = format!("{REFERENCE}{name}");
                members.insert("$ref", Value::string(&text));
            }
            members
                .iter_mut()
                .for_each(|(_, member)| rename(member, renamed));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;

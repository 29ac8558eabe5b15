//! Strategic merge patches with directives in valid and invalid places.

use super::chance::Chance;
use crate::support::{Value, json};

/// Returns the merge key of a list, by the list's name.
fn merge_key(list: &str) -> &'static str {
    match list {
        "ports" => "port",
        "volumeMounts" => "mountPath",
        "conditions" => "type",
        "ownerReferences" => "uid",
        "podIPs" | "hostAliases" => "ip",
        "topologySpreadConstraints" => "topologyKey",
        _ => "name",
    }
}

/// Adds directives to a patch for an object.
pub(super) fn decorate(chance: &mut Chance, patch: &mut Value, live: &Value, odds: usize) {
    let Some(names) = patch.as_object() else {
        return;
    };
    let names: Vec<String> = names.keys().cloned().collect();
    for name in &names {
        let below = &live[name];
        match &mut patch[name] {
            Value::Array(list) => elements(chance, name, list, below, odds),
            other => decorate(chance, other, below, odds),
        }
    }
    lists(chance, patch, live, odds);
    if chance.percent(odds) {
        let words = ["replace", "delete", "merge", "merge", "frob"];
        patch["$patch"] = (*chance.one(&words)).into();
    }
    if chance.percent(odds) {
        let mut kept = names;
        if let Some(members) = live.as_object() {
            let known: Vec<&String> = members.keys().collect();
            if !known.is_empty() && chance.percent(50) {
                kept.push((*chance.one(&known)).clone());
            }
        }
        if chance.percent(15) {
            kept.pop();
        }
        patch["$retainKeys"] = kept.into();
    }
}

/// Adds directives to the elements of a list.
fn elements(chance: &mut Chance, name: &str, list: &mut Vec<Value>, live: &Value, odds: usize) {
    let key = key_of(name, list, live);
    for element in list.iter_mut() {
        let before = live.as_array().and_then(|live| {
            let same = |one: &&Value| one[key] == element[key] && element.is_object();
            live.iter().find(same)
        });
        let before = before.cloned().unwrap_or_default();
        decorate(chance, element, &before, odds / 2);
    }
    let live: Vec<Value> = live.as_array().cloned().unwrap_or_default();
    if chance.percent(odds) && live.first().is_some_and(Value::is_object) {
        let gone = chance.one(&live)[key].clone();
        list.push(json!({"$patch": "delete", key: gone}));
    }
    if chance.percent(odds / 3) {
        list.push(json!({"$patch": "replace"}));
    }
}

/// Returns the key that identifies the elements of a list.
fn key_of(name: &str, list: &[Value], live: &Value) -> &'static str {
    let has = |key: &str| {
        let live = live.as_array().into_iter().flatten();
        list.iter().chain(live).any(|one| one.get(key).is_some())
    };
    match name {
        "ports" if has("containerPort") => "containerPort",
        other => merge_key(other),
    }
}

/// Adds directives about lists, which are members beside them.
fn lists(chance: &mut Chance, patch: &mut Value, live: &Value, odds: usize) {
    let mut known: Vec<String> = Vec::new();
    for side in [&*patch, live] {
        for (name, value) in side.as_object().into_iter().flatten() {
            if value.is_array() && !known.contains(name) && name != "managedFields" {
                known.push(name.clone());
            }
        }
    }
    for name in known {
        let all = |side: &Value| side[&name].as_array().cloned().unwrap_or_default();
        let (new, old) = (all(patch), all(live));
        if chance.percent(odds) {
            let key = key_of(&name, &new, &live[&name]);
            let mut order: Vec<Value> = Vec::new();
            for value in new.iter().chain(&old) {
                let id = match value.get(key) {
                    Some(id) => json!({key: id}),
                    None if value.is_object() => continue,
                    None => value.clone(),
                };
                if !order.contains(&id) {
                    order.push(id);
                }
            }
            if !order.is_empty() && chance.percent(40) {
                let at = chance.below(order.len());
                order.rotate_left(at);
            }
            if chance.percent(20) {
                order.pop();
            }
            patch[format!("$setElementOrder/{name}")] = order.into();
        }
        let plain = old.iter().chain(&new).all(|value| !value.is_object());
        if chance.percent(odds) && !old.is_empty() && plain {
            let gone = chance.one(&old).clone();
            patch[format!("$deleteFromPrimitiveList/{name}")] = json!([gone, "never-there"]);
        }
    }
}

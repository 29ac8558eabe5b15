//! Repairs an existing default object: adds missing parts, keeps additions.

use super::AUTO_UPDATE;
use crate::cover::all_covered;
use crate::rule::Rule;
use bareboat_api::Value;

/// The action for a default object.
#[derive(Clone, Debug, PartialEq)]
pub enum Repair {
    /// No action: it is complete, or its annotation turns repair off.
    Nothing,
    /// Update it to this value.
    Update(Value),
    /// Delete it and create the default: the role of a binding is immutable.
    Recreate,
}

/// Compares a stored object with the default of the same name.
pub fn repair(stored: &Value, default: &Value) -> Repair {
    if stored.at(&["metadata", "annotations", AUTO_UPDATE]) == Some(&Value::from("false")) {
        return Repair::Nothing;
    }
    if stored.get("roleRef") != default.get("roleRef") {
        return Repair::Recreate;
    }
    let mut wanted = stored.clone();
    for member in ["labels", "annotations"] {
        add_members(&mut wanted, default, member);
    }
    add_rules(&mut wanted, default);
    add_items(&mut wanted, default, &["subjects"]);
    add_items(
        &mut wanted,
        default,
        &["aggregationRule", "clusterRoleSelectors"],
    );
    if wanted == *stored {
        Repair::Nothing
    } else {
        Repair::Update(wanted)
    }
}

/// Adds the labels or annotations of the default; others stay.
fn add_members(wanted: &mut Value, default: &Value, member: &str) {
    let Some(Value::Object(defaults)) = default.at(&["metadata", member]) else {
        return;
    };
    let metadata = wanted.make_object().object_mut("metadata");
    let members = metadata.object_mut(member);
    for (key, value) in defaults.iter() {
        // A changed label stays changed: only missing ones are added.
        if members.get(key).is_none() {
            members.insert(key, value.clone());
        }
    }
}

/// Adds the rules of the default that no stored rule covers. Aggregated roles get their rules from
/// other roles.
fn add_rules(wanted: &mut Value, default: &Value) {
    if default.get("aggregationRule").is_some() {
        return;
    }
    let stored = Rule::list(wanted);
    let missing: Vec<Value> = Rule::list(default)
        .iter()
        .filter(|rule| !all_covered(&stored, rule))
        .map(Rule::to_value)
        .collect();
    append(wanted, &["rules"], missing);
}

fn add_items(wanted: &mut Value, default: &Value, path: &[&str]) {
    let list = |value: &Value| -> Vec<Value> {
        let found = value.at(path).and_then(Value::as_array);
        found.unwrap_or(&[]).to_vec()
    };
    let stored = list(wanted);
    let missing = list(default)
        .into_iter()
        .filter(|item| !stored.contains(item))
        .collect();
    append(wanted, path, missing);
}

fn append(wanted: &mut Value, path: &[&str], items: Vec<Value>) {
    let (Some((last, parents)), false) = (path.split_last(), items.is_empty()) else {
        return;
    };
    let mut map = wanted.make_object();
    for parent in parents {
        map = map.object_mut(parent);
    }
    match map.get_mut(last) {
        Some(Value::Array(list)) => list.extend(items),
        _ => {
            map.insert(*last, Value::Array(items));
        }
    }
}

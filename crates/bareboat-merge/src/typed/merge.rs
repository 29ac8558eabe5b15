//! Merges an applied configuration into an object.

use super::{MergeRule, element, items::item_key, member, rule};
use crate::bulk::insert_all;
use bareboat_api::{Str, Value, typing::TypeNode};
use std::collections::{HashMap, HashSet, VecDeque};

/// Merges the configuration into the object; fields outside of the configuration stay.
///
/// The configuration must have passed [`super::validate`].
// Upstream: structured-merge-diff, typed/merge.go.
pub fn merge(object: &mut Value, config: &Value, node: &dyn TypeNode) {
    match rule(node, Some(config)) {
        None | Some(MergeRule::Leaf) => object.clone_from(config),
        Some(MergeRule::Members) => merge_members(object, config, node),
        Some(rule @ (MergeRule::Set | MergeRule::Keyed)) => merge_items(object, config, node, rule),
    }
}

fn merge_members(object: &mut Value, config: &Value, node: &dyn TypeNode) {
    let target = match object {
        Value::Object(members) if !members.is_empty() => members,
        _ => return object.clone_from(config),
    };
    // A null or empty map does not change existing members.
    let Value::Object(config) = config else {
        return;
    };
    let mut fresh = Vec::new();
    for (name, value) in config.iter() {
        match target.get_mut(name) {
            Some(old) => merge(old, value, member(node, name).node),
            None => fresh.push((Str::new(name), value.clone())),
        }
    }
    insert_all(target, fresh);
}

fn merge_items(object: &mut Value, config: &Value, node: &dyn TypeNode, rule: MergeRule) {
    let old = match object {
        Value::Array(list) if !list.is_empty() => std::mem::take(list),
        _ => return object.clone_from(config),
    };
    *object = match config {
        Value::Array(new) if !new.is_empty() => Value::Array(weave(old, new, node, rule)),
        _ => Value::Array(old),
    };
}

/// Merges two lists: elements of the configuration in its order, and among them the others of the
/// old list as close to their old neighbours as that allows.
fn weave(old: Vec<Value>, new: &[Value], node: &dyn TypeNode, rule: MergeRule) -> Vec<Value> {
    // Old elements that can't be identified keep their place; nothing in the configuration is like them.
    let old_keys: Vec<Option<Str>> = old
        .iter()
        .map(|item| item_key(node, rule, item).ok())
        .collect();
    let new_keys: Vec<Option<Str>> = new
        .iter()
        .map(|item| item_key(node, rule, item).ok())
        .collect();
    let wanted: HashSet<&Str> = new_keys.iter().flatten().collect();
    let mut counts: HashMap<&Str, usize> = HashMap::new();
    for key in old_keys.iter().flatten() {
        *counts.entry(key).or_default() += 1;
    }

    let mut slots: Vec<Option<Value>> = old.into_iter().map(Some).collect();
    let mut places: HashMap<&Str, usize> = HashMap::new();
    for (place, key) in old_keys.iter().enumerate() {
        if let Some(key) = key.as_ref().filter(|key| counts[key] == 1) {
            places.insert(key, place);
        }
    }
    let mut merged = Vec::with_capacity(slots.len() + new.len());
    let join = |slots: &mut [Option<Value>], index: usize| {
        let key = new_keys[index].as_ref();
        let taken = key
            .and_then(|key| places.get(key))
            .and_then(|place| slots[*place].take());
        // The configuration's element replaces all old elements with its key.
        match taken {
            None => new[index].clone(),
            Some(mut item) => {
                merge(&mut item, &new[index], element(node));
                item
            }
        }
    };

    let mut shared: VecDeque<&Str> = new_keys
        .iter()
        .flatten()
        .filter(|key| counts.contains_key(key))
        .collect();
    let mut done: HashSet<&Str> = HashSet::new();
    let (mut left, mut right) = (0, 0);
    while left < slots.len() || right < new.len() {
        let next = new_keys.get(right).and_then(Option::as_ref);
        if let Some(key) = old_keys.get(left) {
            let Some(key) = key.as_ref().filter(|key| wanted.contains(key)) else {
                merged.extend(slots[left].take());
                left += 1;
                continue;
            };
            if next == Some(key) {
                left += 1;
            } else if next.is_some() && shared.front().is_some_and(|first| *first != key) {
                // Both lists have it, but it is not the next common element: the configuration puts
                // it later.
                left += 1;
                continue;
            } else if done.contains(key) {
                left += 1;
            }
        }
        if right < new.len() {
            merged.push(join(&mut slots, right));
            if let Some(key) = next {
                done.insert(key);
                if shared.front() == Some(&key) {
                    shared.pop_front();
                }
            }
            right += 1;
        }
    }
    merged
}

//! Removes fields from objects, and fits sets of fields to a type.

use super::{MergeRule, element, items::item_key, member, rule};
use crate::fields::{FieldSet, ITSELF, children, common, field_key, owns};
use bareboat_api::{
    Map, Value,
    typing::{NodeType, TypeNode},
};

/// Removes fields, with everything below them, from an object.
///
/// A map or list that loses its last element is removed too, but not its parent.
// Upstream: structured-merge-diff, typed/remove.go, which leaves null where we leave nothing.
pub fn remove_fields(object: &mut Value, fields: &FieldSet, node: &dyn TypeNode) {
    remove(object, &fields.0, node, false);
}

/// Like [`remove_fields`], but leaves null in place of a container that lost its last element, so
/// that it still counts as a field.
pub(crate) fn hollow_fields(object: &mut Value, fields: &FieldSet, node: &dyn TypeNode) {
    remove(object, &fields.0, node, true);
}

/// Removes fields below a value; returns whether the value stays.
fn remove(value: &mut Value, fields: &Map, node: &dyn TypeNode, hollow: bool) -> bool {
    let mut rest = false;
    match (rule(node, Some(value)), &mut *value) {
        (Some(MergeRule::Members), Value::Object(members)) => {
            members.retain(|name, value| {
                let taken = match fields.get(&field_key(name)) {
                    Some(Value::Object(below)) => Some(below),
                    _ => None,
                };
                if taken.is_some_and(owns) {
                    return false;
                }
                rest = true;
                taken.is_none_or(|below| remove(value, below, member(node, name).node, hollow))
            });
        }
        (Some(rule @ (MergeRule::Set | MergeRule::Keyed)), Value::Array(list)) => {
            list.retain_mut(|item| {
                let key = item_key(node, rule, item).ok();
                let taken = match key.and_then(|key| fields.get(&key)) {
                    Some(Value::Object(below)) => Some(below),
                    _ => None,
                };
                if taken.is_some_and(owns) {
                    return false;
                }
                rest = true;
                taken.is_none_or(|below| remove(item, below, element(node), hollow))
            });
        }
        _ => return true,
    }
    if !rest && hollow {
        *value = Value::Null;
    }
    rest || hollow
}

/// Adds every named member that has fields below it as a field of its own.
// Upstream: structured-merge-diff, fieldpath/set.go, EnsureNamedFieldsAreMembers.
#[must_use]
pub fn name_owned_structs(mut fields: FieldSet, node: &dyn TypeNode) -> FieldSet {
    name_below(&mut fields.0, node);
    fields
}

fn name_below(fields: &mut Map, node: &dyn TypeNode) {
    for (key, below) in fields.iter_mut() {
        let Value::Object(below) = below else {
            continue;
        };
        if below.is_empty() {
            continue;
        }
        match key.strip_prefix("f:") {
            Some(name) => {
                let member = member(node, name);
                name_below(below, member.node);
                if member.named {
                    below.insert(ITSELF, Value::object());
                }
            }
            None => name_below(below, element(node)),
        }
    }
}

/// Fits a set of fields to its type: where a list or map has become atomic, the fields below it are
/// replaced by the whole.
// Upstream: structured-merge-diff, typed/reconcile_schema.go.
pub fn settle_with_type(fields: &mut FieldSet, node: &dyn TypeNode) {
    // Checking first avoids writes in the common case.
    if outgrown(&fields.0, node) {
        settle(&mut fields.0, node);
    }
}

/// Replaces fields below an atomic list or map by the whole, like [`settle_with_type`], but only on paths that are
/// also in `along`.
pub(crate) fn settle_along(fields: &mut FieldSet, along: &FieldSet, node: &dyn TypeNode) {
    settle_common(&mut fields.0, &along.0, node);
}

fn settle_common(fields: &mut Map, along: &Map, node: &dyn TypeNode) {
    common(fields, along, |key, below, along| {
        if below.is_empty() {
            return;
        }
        let node = below_type(node, key);
        if is_whole(node) {
            *below = Map::new();
        } else {
            settle_common(below, along, node);
        }
    });
}

fn outgrown(fields: &Map, node: &dyn TypeNode) -> bool {
    children(fields).any(|(key, below)| {
        if below.is_empty() {
            return false;
        }
        let node = below_type(node, key);
        is_whole(node) || outgrown(below, node)
    })
}

fn settle(fields: &mut Map, node: &dyn TypeNode) {
    for (key, below) in fields.iter_mut() {
        let Value::Object(below) = below else {
            continue;
        };
        if below.is_empty() {
            continue;
        }
        let node = below_type(node, key);
        if is_whole(node) {
            *below = Map::new();
        } else {
            settle(below, node);
        }
    }
}

fn below_type<'a>(node: &'a dyn TypeNode, key: &str) -> &'a dyn TypeNode {
    match key.strip_prefix("f:") {
        Some(name) => member(node, name).node,
        None => element(node),
    }
}

/// Returns whether values of this type are containers that are owned as a whole.
fn is_whole(node: &dyn TypeNode) -> bool {
    node.node_type() != NodeType::Scalar && rule(node, None) == Some(MergeRule::Leaf)
}

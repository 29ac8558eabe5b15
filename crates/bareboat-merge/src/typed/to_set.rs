//! Computes the set of an object's fields.

use super::{MergeRule, element, items::Items, member, rule};
use crate::fields::{FieldSet, ITSELF, field_key};
use bareboat_api::{Map, Str, Value, typing::TypeNode};

/// Returns every field of the object: leaves, elements of lists, entries of maps and empty maps.
// Upstream: structured-merge-diff, typed/tofieldset.go.
pub fn to_set(object: &Value, node: &dyn TypeNode) -> FieldSet {
    FieldSet(nodes_below(object, node).1)
}

/// Returns whether the value itself is a field, and the fields below it.
fn nodes_below(value: &Value, node: &dyn TypeNode) -> (bool, Map) {
    let mut below = Vec::new();
    match (rule(node, Some(value)), value) {
        (Some(MergeRule::Leaf), _) => return (true, Map::new()),
        (Some(MergeRule::Members), Value::Object(members)) => {
            below.reserve(members.len());
            for (name, value) in members.iter() {
                let member = member(node, name);
                let (own, nodes) = nodes_below(value, member.node);
                let hollow = match value {
                    Value::Null => true,
                    Value::Object(members) => members.is_empty(),
                    _ => false,
                };
                push(&mut below, own || hollow || !member.named, nodes, || {
                    field_key(name)
                });
            }
        }
        (Some(rule @ (MergeRule::Set | MergeRule::Keyed)), Value::Array(list)) => {
            for (key, same) in Items::of(node, rule, list).iter() {
                // Elements that look the same are owned as one.
                let nodes = match same {
                    [item] => nodes_below(item, element(node)).1,
                    _ => Map::new(),
                };
                push(&mut below, true, nodes, || key.clone());
            }
        }
        _ => {}
    }
    (false, Map::from_unsorted(below))
}

/// Adds a node to the fields of a level, unless it is empty.
pub(super) fn push(
    level: &mut Vec<(Str, Value)>,
    own: bool,
    mut nodes: Map,
    key: impl FnOnce() -> Str,
) {
    if !own && nodes.is_empty() {
        return;
    }
    if own && !nodes.is_empty() {
        nodes.insert(ITSELF, Value::object());
    }
    level.push((key(), Value::Object(nodes)));
}

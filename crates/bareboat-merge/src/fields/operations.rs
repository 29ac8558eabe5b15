//! Set operations: union, intersection, difference, leaves.

use super::{FieldSet, ITSELF};
use crate::bulk::{FEW, insert_all};
use bareboat_api::{Map, Str, Value};

impl FieldSet {
    /// Adds every field of the other set.
    pub fn unite(&mut self, other: &FieldSet) {
        unite(&mut self.0, &other.0);
    }

    /// Returns the fields of all sets. Adding many sets to one of them would take quadratic time, because each addition
    /// may move all members.
    #[must_use]
    pub(crate) fn union(mut sets: Vec<FieldSet>) -> FieldSet {
        while sets.len() > 1 {
            let mut rest = sets.into_iter();
            sets = Vec::with_capacity(rest.len().div_ceil(2));
            while let Some(mut set) = rest.next() {
                if let Some(other) = rest.next() {
                    set.unite(&other);
                }
                sets.push(set);
            }
        }
        sets.pop().unwrap_or_default()
    }

    /// Removes every field of the other set; children of removed fields stay.
    pub fn subtract(&mut self, other: &FieldSet) {
        subtract(&mut self.0, &other.0);
    }

    /// Removes every field of the other set and everything below it.
    pub fn subtract_trees(&mut self, other: &FieldSet) {
        subtract_trees(&mut self.0, &other.0);
    }

    /// Keeps only the fields of the other set, and everything below them.
    pub fn keep_trees(&mut self, other: &FieldSet) {
        let mut outside = self.clone();
        outside.subtract_trees(other);
        self.subtract(&outside);
    }

    /// Returns the fields that belong to both sets.
    #[must_use]
    pub fn intersection(&self, other: &FieldSet) -> FieldSet {
        FieldSet(intersection(&self.0, &other.0))
    }

    /// Returns the fields that have no children in the set.
    #[must_use]
    pub fn leaves(&self) -> FieldSet {
        FieldSet(leaves(&self.0))
    }

    /// Returns whether every field of this set belongs to the other one.
    pub fn is_subset(&self, other: &FieldSet) -> bool {
        is_subset(&self.0, &other.0)
    }

    /// Returns the number of fields.
    pub fn len(&self) -> usize {
        count(&self.0)
    }
}

/// Returns whether the place of this node belongs to the set.
pub(crate) fn owns(node: &Map) -> bool {
    node.is_empty() || has_mark(node)
}

/// Returns whether a node has the mark `"."`, which sorts before every other key.
fn has_mark(node: &Map) -> bool {
    node.keys().next() == Some(ITSELF)
}

/// Returns the nodes below a node, without its own mark.
pub(crate) fn children(node: &Map) -> impl Iterator<Item = (&str, &Map)> {
    node.iter()
        .filter(|(key, _)| *key != ITSELF)
        .filter_map(|(key, child)| Some((key, child.as_object()?)))
}

fn unite(set: &mut Map, other: &Map) {
    let mut fresh: Vec<(Str, Value)> = Vec::new();
    for (key, child) in children(other) {
        match set.get_mut(key) {
            Some(Value::Object(node)) => {
                let own = owns(node) || owns(child);
                unite(node, child);
                if own && !node.is_empty() && !has_mark(node) {
                    node.insert(ITSELF, Value::object());
                }
            }
            _ => fresh.push((Str::new(key), Value::Object(child.clone()))),
        }
    }
    insert_all(set, fresh);
}

/// Calls the function on the nodes that both have, with their keys. The time depends on the smaller of the two: there
/// may be many small sets, each of which is compared with a large one.
pub(crate) fn common(set: &mut Map, other: &Map, mut visit: impl FnMut(&str, &mut Map, &Map)) {
    if other.len() <= set.len() {
        for (key, child) in children(other) {
            if let Some(Value::Object(node)) = set.get_mut(key) {
                visit(key, node, child);
            }
        }
        return;
    }
    for (key, node) in set.iter_mut().filter(|(key, _)| *key != ITSELF) {
        if let (Value::Object(node), Some(Value::Object(child))) = (node, other.get(key)) {
            visit(key, node, child);
        }
    }
}

/// Calls the function on the nodes that both have, and removes those for which it returns false.
fn prune_common(set: &mut Map, other: &Map, mut keep: impl FnMut(&mut Map, &Map) -> bool) {
    if other.len() <= FEW {
        for (key, child) in children(other) {
            let gone = match set.get_mut(key) {
                Some(Value::Object(node)) => !keep(node, child),
                _ => false,
            };
            if gone {
                set.remove(key);
            }
        }
        return;
    }
    set.retain(|key, node| match (key, node, other.get(key)) {
        (ITSELF, ..) => true,
        (_, Value::Object(node), Some(Value::Object(child))) => keep(node, child),
        _ => true,
    });
}

/// Empties a node that has only its own mark; returns false when the node must be removed.
fn settle(node: &mut Map, own: bool) -> bool {
    if node.len() == usize::from(has_mark(node)) {
        *node = Map::new();
        return own;
    }
    true
}

fn subtract(set: &mut Map, other: &Map) {
    prune_common(set, other, |node, child| {
        let own = owns(node) && !owns(child);
        if !own && has_mark(node) {
            node.remove(ITSELF);
        }
        subtract(node, child);
        settle(node, own)
    });
}

fn subtract_trees(set: &mut Map, other: &Map) {
    prune_common(set, other, |node, child| {
        if owns(child) {
            return false;
        }
        let own = owns(node);
        subtract_trees(node, child);
        settle(node, own)
    });
}

fn intersection(a: &Map, b: &Map) -> Map {
    let (small, large) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let mut both = Vec::new();
    for (key, node) in children(small) {
        let Some(Value::Object(other)) = large.get(key) else {
            continue;
        };
        let own = owns(node) && owns(other);
        let mut common = intersection(node, other);
        if own || !common.is_empty() {
            if own && !common.is_empty() {
                common.insert(ITSELF, Value::object());
            }
            both.push((Str::new(key), Value::Object(common)));
        }
    }
    Map::from_unsorted(both)
}

fn leaves(set: &Map) -> Map {
    let leaves = children(set).map(|(key, node)| (Str::new(key), Value::Object(leaves(node))));
    Map::from_unsorted(leaves.collect())
}

fn is_subset(set: &Map, other: &Map) -> bool {
    children(set).all(|(key, node)| match other.get(key) {
        Some(Value::Object(wider)) => (!owns(node) || owns(wider)) && is_subset(node, wider),
        _ => false,
    })
}

fn count(set: &Map) -> usize {
    children(set)
        .map(|(_, node)| usize::from(owns(node)) + count(node))
        .sum()
}

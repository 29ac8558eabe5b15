//! Compares two objects field by field.

use super::{MergeRule, element, items::Items, member, rule, to_set::push};
use crate::fields::{FieldSet, field_key};
use bareboat_api::{Map, Str, Value, typing::TypeNode};
use std::cmp::Ordering;

/// The fields in which two objects differ.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Fields that are new or have another value.
    pub changed: FieldSet,
    /// Fields that were removed.
    pub removed: FieldSet,
}

impl Changes {
    /// Returns whether the objects are equal in all tracked fields.
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.removed.is_empty()
    }

    /// Drops the given fields and the fields below them.
    pub fn ignore(&mut self, fields: &FieldSet) {
        self.changed.subtract_trees(fields);
        self.removed.subtract_trees(fields);
    }

    /// Drops all fields except the given ones and the fields below them.
    pub fn keep(&mut self, fields: &FieldSet) {
        self.changed.keep_trees(fields);
        self.removed.keep_trees(fields);
    }
}

/// The untracked members of an object.
pub(crate) const UNTRACKED: [&str; 2] = ["apiVersion", "kind"];

/// The untracked members of the metadata.
pub(crate) const UNTRACKED_META: [&str; 9] = [
    "clusterName",
    "creationTimestamp",
    "generation",
    "managedFields",
    "name",
    "namespace",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Compares two objects of one type; untracked fields do not count.
// Upstream: structured-merge-diff, typed/compare.go.
pub fn changes(old: &Value, new: &Value, node: &dyn TypeNode) -> Changes {
    let mut level = Level::default();
    zip(old.as_object(), new.as_object(), |name, old, new| {
        if UNTRACKED.contains(&name) {
            return;
        }
        if name == "metadata" {
            metadata(&mut level, old, new, member(node, name).node);
            return;
        }
        level.compare(old, new, || member(node, name).node, || field_key(name));
    });
    Changes {
        changed: FieldSet(Map::from_unsorted(level.changed)),
        removed: FieldSet(Map::from_unsorted(level.removed)),
    }
}

/// Compares the metadata; it is never owned as a whole, and some of its members are untracked.
fn metadata(outer: &mut Level, old: Option<&Value>, new: Option<&Value>, node: &dyn TypeNode) {
    let mut level = Level::default();
    let (old, new) = (
        old.and_then(Value::as_object),
        new.and_then(Value::as_object),
    );
    zip(old, new, |name, old, new| {
        if !UNTRACKED_META.contains(&name) {
            level.compare(old, new, || member(node, name).node, || field_key(name));
        }
    });
    outer.push(None, level, || field_key("metadata"));
}

/// The differences among the children of one place.
#[derive(Default)]
struct Level {
    changed: Vec<(Str, Value)>,
    removed: Vec<(Str, Value)>,
}

/// How a field itself differs, without the fields below it.
#[derive(Clone, Copy, PartialEq)]
enum Own {
    Changed,
    Removed,
}

impl Level {
    /// Compares one child; its type and key are computed only if it differs.
    fn compare<'a>(
        &mut self,
        old: Option<&Value>,
        new: Option<&Value>,
        node: impl FnOnce() -> &'a dyn TypeNode,
        key: impl Fn() -> Str,
    ) {
        // Most of an object is unchanged, and comparing is cheaper than looking up types.
        if matches!((old, new), (Some(old), Some(new)) if old == new) {
            return;
        }
        let (own, level) = differences(old, new, node());
        self.push(own, level, key);
    }

    fn push(&mut self, own: Option<Own>, level: Level, key: impl Fn() -> Str) {
        let changes = own == Some(Own::Changed);
        if changes || !level.changed.is_empty() {
            let changed = Map::from_unsorted(level.changed);
            push(&mut self.changed, changes, changed, &key);
        }
        let removes = own == Some(Own::Removed);
        if removes || !level.removed.is_empty() {
            let removed = Map::from_unsorted(level.removed);
            push(&mut self.removed, removes, removed, &key);
        }
    }

    /// Compares the members of two objects.
    fn members(&mut self, old: Option<&Map>, new: Option<&Map>, node: &dyn TypeNode) {
        match (old, new) {
            (None, Some(new)) => self.changed.reserve(new.len()),
            (Some(old), None) => self.removed.reserve(old.len()),
            _ => {}
        }
        zip(old, new, |name, old, new| {
            self.compare(old, new, || member(node, name).node, || field_key(name));
        });
    }

    /// Compares the elements of two lists.
    fn items(&mut self, old: &[Value], new: &[Value], node: &dyn TypeNode, rule: MergeRule) {
        let old = Items::of(node, rule, old);
        let new = Items::of(node, rule, new);
        for (key, before) in old.iter() {
            self.item(key, before, new.get(key), node);
        }
        for (key, after) in new.iter().filter(|(key, _)| old.get(key).is_empty()) {
            self.item(key, &[], after, node);
        }
    }

    /// Compares the elements with one key; several elements with the same key are owned as one.
    fn item(&mut self, key: &Str, old: &[&Value], new: &[&Value], node: &dyn TypeNode) {
        let node = element(node);
        match (old, new) {
            ([] | [_], [] | [_]) => {
                let (old, new) = (old.first().copied(), new.first().copied());
                self.compare(old, new, || node, || key.clone());
            }
            ([_, _, ..], [_, _, ..]) => {
                if old != new {
                    self.push(Some(Own::Changed), Level::default(), || key.clone());
                }
            }
            ([_, _, ..], _) => {
                if let Some(new) = new.first() {
                    self.compare(None, Some(new), || node, || key.clone());
                }
                self.push(Some(Own::Removed), Level::default(), || key.clone());
            }
            (_, [_, _, ..]) => {
                if let Some(old) = old.first() {
                    self.compare(Some(old), None, || node, || key.clone());
                }
                self.push(Some(Own::Changed), Level::default(), || key.clone());
            }
        }
    }
}

/// Compares two different values at their place and below it.
fn differences(
    old: Option<&Value>,
    new: Option<&Value>,
    node: &dyn TypeNode,
) -> (Option<Own>, Level) {
    let own = match (old, new) {
        (None, _) => Some(Own::Changed),
        (_, None) => Some(Own::Removed),
        _ => None,
    };
    let as_leaf = (own.or(Some(Own::Changed)), Level::default());
    let members = (
        old.and_then(Value::as_object),
        new.and_then(Value::as_object),
    );
    let mut level = Level::default();
    // Where one of the values is absent, the other one has the rule.
    let rule_of = |value: Option<&Value>| value.and_then(|value| rule(node, Some(value)));
    let rule = match (rule_of(old), rule_of(new)) {
        (Some(before), Some(after)) if before != after => {
            // Where the type is open, an object became another type or the reverse.
            level.members(members.0, members.1, node);
            return (Some(Own::Changed), level);
        }
        (before, after) => before.or(after).unwrap_or(MergeRule::Leaf),
    };
    match rule {
        MergeRule::Leaf => return as_leaf,
        MergeRule::Members => {
            if members.0.is_none_or(Map::is_empty) && members.1.is_none_or(Map::is_empty) {
                return as_leaf;
            }
            level.members(members.0, members.1, node);
        }
        MergeRule::Set | MergeRule::Keyed => {
            let old = old.and_then(Value::as_array).unwrap_or_default();
            let new = new.and_then(Value::as_array).unwrap_or_default();
            if old.is_empty() && new.is_empty() {
                return as_leaf;
            }
            level.items(old, new, node, rule);
        }
    }
    (own, level)
}

/// Visits the members of two objects in the order of their names.
fn zip<'a>(
    old: Option<&'a Map>,
    new: Option<&'a Map>,
    mut visit: impl FnMut(&'a str, Option<&'a Value>, Option<&'a Value>),
) {
    let mut old = old.into_iter().flat_map(Map::iter).peekable();
    let mut new = new.into_iter().flat_map(Map::iter).peekable();
    loop {
        let order = match (old.peek(), new.peek()) {
            (None, None) => return,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((a, _)), Some((b, _))) => a.cmp(b),
        };
        let before = if order.is_le() { old.next() } else { None };
        let after = if order.is_ge() { new.next() } else { None };
        if let Some((name, _)) = before.or(after) {
            visit(
                name,
                before.map(|(_, value)| value),
                after.map(|(_, value)| value),
            );
        }
    }
}

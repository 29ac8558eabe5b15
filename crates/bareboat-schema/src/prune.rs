//! Removes undeclared members, and nulls that are not allowed.
//!
//! `default` fills in defaults, `metadata` normalises metadata.

use crate::schema::{Additional, Flags, Node, Schema};
use bareboat_api::{Map, Value};
use std::fmt::Write as _;

impl Schema {
    /// Removes members that the schema does not declare and adds their paths (`spec.items[0].bar`)
    /// to `unknown`, which is sorted; `apiVersion`, `kind` and `metadata` of the object and of
    /// embedded resources stay.
    pub fn prune(&self, object: &mut Value, unknown: Option<&mut Vec<String>>) {
        let mut pruner = Pruner {
            path: String::new(),
            unknown,
        };
        pruner.prune(object, Some(&self.root), true);
        if let Some(unknown) = pruner.unknown {
            bareboat_api::sort_by(unknown, Ord::cmp);
        }
    }

    /// Removes nulls that are neither allowed nor replaced by a default.
    pub fn drop_nulls(&self, object: &mut Value) {
        drop_nulls(object, &self.root);
    }
}

/// Prunes a value against any node; `resource` keeps type meta and metadata at its top.
pub(crate) fn prune(value: &mut Value, node: &Node, resource: bool) {
    let mut pruner = Pruner {
        path: String::new(),
        unknown: None,
    };
    pruner.prune(value, Some(node), resource);
}

struct Pruner<'r> {
    path: String,
    unknown: Option<&'r mut Vec<String>>,
}

impl Pruner<'_> {
    fn prune(&mut self, value: &mut Value, node: Option<&Node>, resource: bool) {
        match value {
            Value::Object(map) => self.prune_object(map, node, resource),
            Value::Array(list) => {
                // Unknown members may also stay in the elements of a preserved list.
                let preserved = node.is_some_and(|node| node.has(Flags::PRESERVE));
                let items = node.and_then(|node| node.items.as_deref());
                if preserved && items.is_none() {
                    return;
                }
                for (index, item) in list.iter_mut().enumerate() {
                    self.at_index(index, item, |this, item| {
                        if preserved {
                            this.prune_preserved(item, items);
                        } else {
                            this.prune(item, items, false);
                        }
                    });
                }
            }
            _ => {}
        }
    }

    fn prune_object(&mut self, map: &mut Map, node: Option<&Node>, resource: bool) {
        let Some(node) = node else {
            self.record_all(map);
            *map = Map::new();
            return;
        };
        let resource = resource || node.has(Flags::EMBEDDED);
        let preserved = node.has(Flags::PRESERVE);
        let at_root = self.path.is_empty();
        let mut declared = node.in_order();
        map.retain(|key, member| {
            if resource && is_meta(key) {
                return true;
            }
            if let Some(property) = declared.property(key) {
                self.at_key(key, member, |this, member| {
                    this.prune(member, Some(property), false)
                });
                return true;
            }
            match &node.additional {
                Additional::Node(schema) => {
                    self.at_key(key, member, |this, member| {
                        this.prune(member, Some(schema), false)
                    });
                    true
                }
                Additional::Allowed(_) => {
                    self.at_key(key, member, |this, member| this.prune(member, None, false));
                    true
                }
                Additional::Absent if preserved => true,
                Additional::Absent => {
                    if !(at_root && is_meta(key)) {
                        self.record(key);
                    }
                    false
                }
            }
        });
    }

    /// Prunes a preserved list: its elements keep unknown members, declared members are pruned
    /// inside.
    fn prune_preserved(&mut self, value: &mut Value, node: Option<&Node>) {
        let Some(node) = node else { return };
        match value {
            Value::Object(map) => {
                for (key, member) in map.iter_mut() {
                    if node.has(Flags::EMBEDDED) && is_meta(key) {
                        continue;
                    }
                    if let Some(schema) = node.member(key) {
                        self.at_key(key, member, |this, member| {
                            this.prune(member, Some(schema), false)
                        });
                    } else if matches!(node.additional, Additional::Allowed(_)) {
                        self.at_key(key, member, |this, member| this.prune(member, None, false));
                    }
                }
            }
            Value::Array(list) => {
                for (index, item) in list.iter_mut().enumerate() {
                    self.at_index(index, item, |this, item| {
                        this.prune_preserved(item, node.items.as_deref());
                    });
                }
            }
            _ => {}
        }
    }

    fn record_all(&mut self, map: &Map) {
        if self.unknown.is_some() {
            map.keys().for_each(|key| self.record(key));
        }
    }

    fn record(&mut self, key: &str) {
        if let Some(unknown) = &mut self.unknown {
            unknown.push(if self.path.is_empty() {
                key.to_owned()
            } else {
                format!("{}.{key}", self.path)
            });
        }
    }

    /// Enters a member. A scalar has nothing to prune.
    fn at_key(&mut self, key: &str, member: &mut Value, then: impl FnOnce(&mut Self, &mut Value)) {
        if is_scalar(member) {
            return;
        }
        let length = self.path.len();
        // The path is only needed if the caller collects unknown fields, but an empty path marks
        // the root.
        if length > 0 {
            self.path.push('.');
        }
        self.path.push_str(key);
        then(self, member);
        self.path.truncate(length);
    }

    /// Enters an element.
    fn at_index(
        &mut self,
        index: usize,
        item: &mut Value,
        then: impl FnOnce(&mut Self, &mut Value),
    ) {
        if is_scalar(item) {
            return;
        }
        let length = self.path.len();
        let _ = write!(self.path, "[{index}]");
        then(self, item);
        self.path.truncate(length);
    }
}

/// Returns whether a value has no parts.
pub(crate) fn is_scalar(value: &Value) -> bool {
    !matches!(value, Value::Object(_) | Value::Array(_))
}

/// Returns whether a member of a resource need not be declared.
pub(crate) fn is_meta(key: &str) -> bool {
    matches!(key, "apiVersion" | "kind" | "metadata")
}

fn drop_nulls(value: &mut Value, node: &Node) {
    match value {
        Value::Object(map) => {
            let mut declared = node.in_order();
            map.retain(|key, member| {
                if is_scalar(member) && !member.is_null() {
                    return true;
                }
                let Some(schema) = declared.property(key).or_else(|| node.additional()) else {
                    return true;
                };
                let unwanted =
                    member.is_null() && !schema.has(Flags::NULLABLE) && schema.default.is_none();
                if !unwanted {
                    drop_nulls(member, schema);
                }
                !unwanted
            });
        }
        Value::Array(list) => {
            if let Some(items) = &node.items {
                list.iter_mut().for_each(|item| drop_nulls(item, items));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;

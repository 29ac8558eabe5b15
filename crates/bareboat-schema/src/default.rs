//! Fills in the defaults a schema declares, wherever the parent object exists.

use crate::schema::{Flags, Node, Schema};
use bareboat_api::Value;

impl Schema {
    /// Fills in defaults for members that are missing, or null where null is not allowed.
    pub fn default(&self, object: &mut Value) {
        fill(object, &self.root);
    }
}

fn fill(value: &mut Value, node: &Node) {
    if !node.has(Flags::DEFAULTS_BELOW) {
        return;
    }
    match value {
        Value::Object(map) => {
            for (name, property) in &node.properties {
                let Some(default) = &property.default else {
                    continue;
                };
                match map.get_mut(name) {
                    Some(member) => replace_null(member, property),
                    None => {
                        map.insert(&**name, (**default).clone());
                    }
                }
            }
            let mut declared = node.in_order();
            for (name, member) in map.iter_mut() {
                if let Some(property) = declared.property(name) {
                    fill(member, property);
                } else if let Some(schema) = node.additional() {
                    replace_null(member, schema);
                    fill(member, schema);
                }
            }
        }
        Value::Array(list) => {
            if let Some(items) = &node.items {
                for item in list {
                    replace_null(item, items);
                    fill(item, items);
                }
            }
        }
        _ => {}
    }
}

fn replace_null(value: &mut Value, node: &Node) {
    if value.is_null()
        && !node.has(Flags::NULLABLE)
        && let Some(default) = &node.default
    {
        *value = (**default).clone();
    }
}

#[cfg(test)]
mod tests;

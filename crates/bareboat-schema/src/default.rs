//! Fills in the defaults of a schema wherever the parent object exists.
//!
//! Defaults can contain defaults, and lists multiply them, so the memory they add to an object is
//! limited.

mod weight;

use crate::prune::is_scalar;
use crate::schema::{Flags, Node, Schema};
use bareboat_api::Value;

/// The maximum memory that defaults may add to an object.
pub const MAX_DEFAULTS: usize = 8 << 20;

/// The error of defaults that add more than [`MAX_DEFAULTS`] to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the defaults of its schema add more than {MAX_DEFAULTS} bytes to the object")]
pub struct TooManyDefaults;

impl Schema {
    /// Fills in defaults for members that are missing, or null where null is not allowed. If there
    /// are too many, the object stays partly defaulted.
    pub fn default(&self, object: &mut Value) -> Result<(), TooManyDefaults> {
        let mut room = MAX_DEFAULTS;
        fill(object, &self.root, &mut room)
    }

    /// Returns how many bytes of defaults one value of an object can cause, at most: an empty object
    /// or null may be filled with defaults that are filled with defaults again.
    pub fn defaults_per_value(&self) -> usize {
        weight::most(&self.root)
    }

    /// Returns whether [`Schema::default`] would leave an object unchanged.
    pub fn is_defaulted(&self, object: &Value) -> bool {
        is_filled(object, &self.root)
    }
}

fn fill(value: &mut Value, node: &Node, room: &mut usize) -> Result<(), TooManyDefaults> {
    if !node.has(Flags::DEFAULTS_BELOW) {
        return Ok(());
    }
    match value {
        Value::Object(map) => {
            for (name, property) in &node.properties {
                let Some(default) = &property.default else {
                    continue;
                };
                match map.get_mut(name) {
                    Some(member) => replace_null(member, property, room)?,
                    None => {
                        take(room, name.len() + default.bytes)?;
                        map.insert(&**name, default.value.clone());
                    }
                }
            }
            let mut declared = node.in_order();
            for (name, member) in map.iter_mut() {
                // Nothing is filled into most members, which need not be looked up.
                if is_scalar(member) && !member.is_null() {
                    continue;
                }
                if let Some(property) = declared.property(name) {
                    fill(member, property, room)?;
                } else if let Some(schema) = node.additional() {
                    replace_null(member, schema, room)?;
                    fill(member, schema, room)?;
                }
            }
        }
        Value::Array(list) => {
            if let Some(items) = &node.items {
                for item in list {
                    replace_null(item, items, room)?;
                    fill(item, items, room)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn replace_null(value: &mut Value, node: &Node, room: &mut usize) -> Result<(), TooManyDefaults> {
    if is_replaced(value, node)
        && let Some(default) = &node.default
    {
        take(room, default.bytes)?;
        *value = default.value.clone();
    }
    Ok(())
}

/// Returns whether a default replaces a null.
fn is_replaced(value: &Value, node: &Node) -> bool {
    value.is_null() && !node.has(Flags::NULLABLE) && node.default.is_some()
}

fn is_filled(value: &Value, node: &Node) -> bool {
    if !node.has(Flags::DEFAULTS_BELOW) {
        return true;
    }
    match value {
        Value::Object(map) => {
            let complete = node.properties.iter().all(|(name, property)| {
                let found = map.get(name);
                property.default.is_none()
                    || found.is_some_and(|member| !is_replaced(member, property))
            });
            let mut declared = node.in_order();
            complete
                && map.iter().all(|(name, member)| {
                    if let Some(property) = declared.property(name) {
                        return is_filled(member, property);
                    }
                    let schema = node.additional();
                    schema.is_none_or(|schema| {
                        !is_replaced(member, schema) && is_filled(member, schema)
                    })
                })
        }
        Value::Array(list) => node.items.as_deref().is_none_or(|items| {
            list.iter()
                .all(|item| !is_replaced(item, items) && is_filled(item, items))
        }),
        _ => true,
    }
}

fn take(room: &mut usize, bytes: usize) -> Result<(), TooManyDefaults> {
    *room = room.checked_sub(bytes).ok_or(TooManyDefaults)?;
    Ok(())
}

/// Returns the approximate memory of a copy of a value.
pub(crate) fn bytes_of(value: &Value) -> usize {
    let own = size_of::<Value>();
    match value {
        Value::String(text) => own + text.len(),
        Value::Array(list) => own + list.iter().map(bytes_of).sum::<usize>(),
        Value::Object(map) => {
            let members = map.iter();
            own + members
                .map(|(name, member)| 24 + name.len() + bytes_of(member))
                .sum::<usize>()
        }
        _ => own,
    }
}

#[cfg(test)]
mod tests;

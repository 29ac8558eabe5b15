//! Strategic merge patch: a partial object whose lists merge by the keys of their type.
//!
//! Directives (`$patch`, `$retainKeys`, `$setElementOrder/…`, `$deleteFromPrimitiveList/…`) are
//! applied where a value is merged. Where there is nothing to merge with they have no effect, and
//! like in Kubernetes all but `$patch` stay, so that decoding reports them as unknown members. The
//! caller's [`TypeNode`]s have the merge keys; the caller decodes and validates.

mod lists;
mod order;

use crate::bulk::{insert_all, remove_all};
use bareboat_api::{Map, Value, typing::TypeNode};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_LIST: &str = "$deleteFromPrimitiveList";
const ELEMENT_ORDER: &str = "$setElementOrder";

/// The error of a strategic merge patch that cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StrategicError {
    /// The patch, or a directive in it, is malformed: a bad request.
    #[error("{0}")]
    Malformed(&'static str),
    /// The patch needs an unsupported feature, such as merging lists of lists: unprocessable.
    #[error("{0}")]
    Unsupported(&'static str),
    /// The patch does not fit the object; Kubernetes answers 500.
    #[error("{0}")]
    Inapplicable(String),
}

const BAD_RETAIN_KEYS: StrategicError =
    StrategicError::Malformed("invalid patch format of retainKeys");
const BAD_DELETE_LIST: StrategicError =
    StrategicError::Malformed("invalid patch format of primitive list");
const BAD_ELEMENT_ORDER: StrategicError =
    StrategicError::Malformed("invalid patch format of setElementOrder list");

type Node<'a> = Option<&'a dyn TypeNode>;

/// Merges the patch into an object of the given type.
///
/// On an error the object is left half changed. Recursion follows the patch, whose depth its
/// parser has bounded.
// Upstream: apimachinery/pkg/util/strategicpatch, StrategicMergeMapPatch.
pub fn strategic_merge(
    target: &mut Value,
    patch: Value,
    node: &dyn TypeNode,
) -> Result<(), StrategicError> {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => merge_members(target, patch, Some(node)),
        _ => Err(StrategicError::Malformed("invalid JSON document")),
    }
}

/// Merges one object into another.
fn merge_members(target: &mut Map, mut patch: Map, node: Node) -> Result<(), StrategicError> {
    match patch.remove(DIRECTIVE) {
        None => {}
        Some(directive) => match directive.as_str() {
            Some("replace") => {
                *target = patch;
                return Ok(());
            }
            Some("delete") => {
                *target = Map::new();
                return Ok(());
            }
            _ => return Err(unknown_directive(&directive, patch)),
        },
    }
    if let Some(retained) = patch.remove(RETAIN_KEYS) {
        retain_keys(target, &patch, &retained)?;
    }
    order::merge_ordered_lists(target, &mut patch, node)?;
    let (mut fresh, mut gone) = (Vec::new(), Vec::new());
    for (key, value) in patch {
        if key.starts_with(DELETE_LIST) {
            let list = directed_field(&key, DELETE_LIST).ok_or(BAD_DELETE_LIST)?;
            lists::delete_from(target, list, value)?;
            continue;
        }
        match target.get_mut(&key) {
            Some(old) => {
                if !merge_member(old, &key, value, node)? {
                    gone.push(key);
                }
            }
            None => fresh.extend(new_value(value).map(|value| (key, value))),
        }
    }
    remove_all(target, &gone);
    insert_all(target, fresh);
    Ok(())
}

/// Merges one existing member; returns false if it must be removed.
fn merge_member(
    old: &mut Value,
    key: &str,
    value: Value,
    node: Node,
) -> Result<bool, StrategicError> {
    let field = node.and_then(|node| node.field(key));
    match (&mut *old, value) {
        (Value::Object(old), Value::Object(new)) => {
            if field.is_some_and(TypeNode::patch_replaces) {
                *old = new;
            } else {
                merge_members(old, new, field)?;
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            *old = lists::merge(std::mem::take(old), new, key, field)?;
        }
        (_, value) => match new_value(value) {
            Some(value) => *old = value,
            None => return Ok(false),
        },
    }
    Ok(true)
}

/// Returns a value of the patch that has nothing to merge with; `None` if it only removes.
fn new_value(mut value: Value) -> Option<Value> {
    discard_nulls(&mut value);
    (!value.is_null() && strip_directives(&mut value)).then_some(value)
}

/// Removes the members a `$retainKeys` list does not name.
fn retain_keys(target: &mut Map, patch: &Map, retained: &Value) -> Result<(), StrategicError> {
    let names = retained.as_array().ok_or(BAD_RETAIN_KEYS)?;
    let names: std::collections::HashSet<&str> = names.iter().filter_map(Value::as_str).collect();
    let unnamed = patch.iter().any(|(key, value)| {
        let directive = key.starts_with(DELETE_LIST) || key.starts_with(ELEMENT_ORDER);
        !value.is_null() && !directive && !names.contains(key)
    });
    if unnamed {
        return Err(BAD_RETAIN_KEYS);
    }
    target.retain(|key, _| names.contains(key));
    Ok(())
}

/// Returns the field of a directive such as `$setElementOrder/finalizers`.
fn directed_field<'a>(key: &'a str, directive: &str) -> Option<&'a str> {
    key.strip_prefix(directive)?.strip_prefix('/')
}

/// Removes objects with a `$patch` from a new value; returns false if it is one itself.
fn strip_directives(value: &mut Value) -> bool {
    match value {
        Value::Object(members) => {
            if members.contains_key(DIRECTIVE) {
                return false;
            }
            members.retain(|_, value| strip_directives(value));
        }
        Value::Array(items) => items.retain_mut(strip_directives),
        _ => {}
    }
    true
}

/// Removes `null` members: they would remove members that do not exist.
fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => members.retain(|_, value| {
            discard_nulls(value);
            !value.is_null()
        }),
        Value::Array(items) => items.iter_mut().for_each(discard_nulls),
        _ => {}
    }
}

fn unknown_directive(directive: &Value, patch: Map) -> StrategicError {
    let shown = directive
        .as_str()
        .map_or_else(|| directive.to_string(), String::from);
    StrategicError::Inapplicable(format!(
        "unknown patch type: {shown} in map: {}",
        Value::Object(patch)
    ))
}

#[cfg(test)]
mod tests;

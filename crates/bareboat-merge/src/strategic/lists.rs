//! Merges lists of a strategic merge patch: by merge key or, for primitives, by value.

use super::{
    DIRECTIVE, Node, StrategicError, merge_members,
    order::{Identity, Ranks, arrange},
    unknown_directive,
};
use bareboat_api::field::go_value;
use bareboat_api::{Map, Value};
use std::collections::HashSet;

/// The type of a list's elements.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Elements {
    /// Strings, numbers or booleans.
    Primitives,
    /// Objects.
    Objects,
}

/// Merges two lists of one member.
pub(super) fn merge(
    old: Vec<Value>,
    new: Vec<Value>,
    name: &str,
    field: Node,
) -> Result<Vec<Value>, StrategicError> {
    let strategy = field
        .map(|field| field.patch_strategy())
        .unwrap_or_default();
    if !strategy.merge || (old.is_empty() && new.is_empty()) {
        return Ok(new);
    }
    match elements(&[&old, &new])? {
        None | Some(Elements::Primitives) => Ok(merge_primitives(old, new)),
        Some(Elements::Objects) => {
            let key = strategy.merge_key.ok_or_else(|| {
                StrategicError::Inapplicable(format!(
                    "cannot merge lists without merge key for {name}"
                ))
            })?;
            merge_objects(old, new, key, field.and_then(|field| field.items()))
        }
    }
}

/// Returns the common element type of some lists; `None` when they are empty.
pub(super) fn elements(lists: &[&[Value]]) -> Result<Option<Elements>, StrategicError> {
    let mut first: Option<&Value> = None;
    for value in lists.iter().copied().flatten() {
        if matches!(value, Value::Array(_)) {
            return Err(StrategicError::Unsupported(
                "lists of lists are not supported",
            ));
        }
        match first {
            None => first = Some(value),
            Some(first) if first.type_name() == value.type_name() => {}
            Some(first) => {
                return Err(StrategicError::Inapplicable(format!(
                    "list element types are not identical: {} and {}",
                    first.type_name(),
                    value.type_name()
                )));
            }
        }
    }
    Ok(first.map(|value| match value {
        Value::Object(_) => Elements::Objects,
        _ => Elements::Primitives,
    }))
}

fn merge_primitives(old: Vec<Value>, new: Vec<Value>) -> Vec<Value> {
    let server = Ranks::of(&old, None);
    let patch = Ranks::of(&new, None);
    let mut seen = HashSet::new();
    let merged = old
        .into_iter()
        .chain(new)
        .map(|value| (Identity::of(&value), value));
    let merged = merged
        .filter(|(identity, _)| seen.insert(identity.clone()))
        .collect();
    arrange(merged, &patch, &server)
}

fn merge_objects(
    mut old: Vec<Value>,
    new: Vec<Value>,
    key: &str,
    item: Node,
) -> Result<Vec<Value>, StrategicError> {
    let mut replace = false;
    let mut deleted = HashSet::new();
    let mut plain: Vec<Map> = Vec::with_capacity(new.len());
    for element in new {
        let Value::Object(members) = element else {
            continue;
        };
        match members.get(DIRECTIVE) {
            None => plain.push(members),
            Some(directive) => match directive.as_str() {
                Some("delete") => {
                    let value = members
                        .get(key)
                        .ok_or_else(|| no_merge_key(&members, key))?;
                    deleted.insert(Identity::of(value));
                }
                Some("replace") => replace = true,
                Some("merge") => {
                    return Err(StrategicError::Inapplicable(
                        "merging lists cannot yet be specified in the patch".into(),
                    ));
                }
                _ => return Err(unknown_directive(&directive.clone(), members)),
            },
        }
    }
    if replace {
        let plain = plain.into_iter().map(Value::Object).collect();
        let identified = identified(plain, Some(key))?;
        return Ok(identified.into_iter().map(|(_, value)| value).collect());
    }
    if !deleted.is_empty() {
        old.retain(|value| {
            !value
                .get(key)
                .is_some_and(|id| deleted.contains(&Identity::of(id)))
        });
    }

    let server = Ranks::of(&old, Some(key));
    let mut patch = Ranks::default();
    let mut places = server.clone();
    let mut merged = old;
    for members in plain {
        let identity = match members.get(key) {
            Some(value) => Identity::of(value),
            None => return Err(no_merge_key(&members, key)),
        };
        patch.push(identity.clone());
        match places
            .get(&identity)
            .and_then(|place| merged.get_mut(place))
        {
            Some(Value::Object(target)) => merge_members(target, members, item)?,
            _ => {
                places.set(identity, merged.len());
                merged.push(Value::Object(members));
            }
        }
    }
    Ok(arrange(identified(merged, Some(key))?, &patch, &server))
}

/// Returns elements with their identities.
pub(super) fn identified(
    list: Vec<Value>,
    key: Option<&str>,
) -> Result<Vec<(Identity, Value)>, StrategicError> {
    let identify = |value: Value| {
        let Some(key) = key else {
            return Ok((Identity::of(&value), value));
        };
        match &value {
            Value::Object(members) => match members.get(key) {
                Some(id) => Ok((Identity::of(id), value)),
                None => Err(no_merge_key(members, key)),
            },
            other => Err(StrategicError::Inapplicable(format!(
                "expected an object with merge key {key}, but received a {}",
                other.type_name()
            ))),
        }
    };
    list.into_iter().map(identify).collect()
}

/// Removes the primitives in a `$deleteFromPrimitiveList` from a list.
pub(super) fn delete_from(
    target: &mut Map,
    name: &str,
    value: Value,
) -> Result<(), StrategicError> {
    let gone = match value {
        Value::Array(items) => items,
        Value::Null => {
            target.remove(name);
            return Ok(());
        }
        // A value that is not a list removes nothing.
        _ => return Ok(()),
    };
    if let Some(Value::Array(old)) = target.get_mut(name) {
        if elements(&[old, &gone])? == Some(Elements::Objects) {
            let text = format!("objects cannot be deleted from {name} by value");
            return Err(StrategicError::Inapplicable(text));
        }
        let gone: HashSet<Identity> = gone.iter().map(Identity::of).collect();
        old.retain(|value| !gone.contains(&Identity::of(value)));
    }
    Ok(())
}

pub(super) fn no_merge_key(members: &Map, key: &str) -> StrategicError {
    let shown = go_value(&Value::Object(members.clone()));
    StrategicError::Inapplicable(format!(
        "map: {shown} does not contain declared merge key: {key}"
    ))
}

//! JSON merge patch: a partial document where `null` removes (RFC 7396).
//!
//! The caller decodes the patch and restores immutable fields.

use crate::bulk::{insert_all, remove_all};
use bareboat_api::{Map, Value};

/// Merges the patch into the target.
///
/// Recursion follows the patch, whose depth its parser has bounded.
pub fn merge_patch(target: &mut Value, patch: Value) {
    let Value::Object(members) = patch else {
        *target = patch;
        return;
    };
    merge_members(target.make_object(), members);
}

fn merge_members(target: &mut Map, patch: Map) {
    let (mut fresh, mut gone) = (Vec::new(), Vec::new());
    for (key, value) in patch {
        match (target.get_mut(&key), value) {
            (None, Value::Null) => {}
            (Some(_), Value::Null) => gone.push(key),
            (Some(old), Value::Object(members)) => merge_members(old.make_object(), members),
            (Some(old), mut value) => {
                if old.as_object().is_none() {
                    drop_nulls(&mut value);
                }
                *old = value;
            }
            (None, mut value @ Value::Array(_)) => {
                drop_nulls(&mut value);
                fresh.push((key, value));
            }
            (None, value) => {
                let mut new = Value::Null;
                merge_patch(&mut new, value);
                fresh.push((key, new));
            }
        }
    }
    remove_all(target, &gone);
    insert_all(target, fresh);
}

/// Drops null members from the objects in a list that is new, or replaces no object.
// Upstream: evanphx/json-patch, pruneNils, which goes further than the standard.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => members.retain(|_, value| {
            drop_nulls(value);
            !value.is_null()
        }),
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests;

//! JSON merge patch: a partial document where `null` removes (RFC 7396).
//!
//! Decoding, and the restoring of fields that may not change, is left to the caller.

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
    for (key, value) in patch {
        match value {
            Value::Null => {
                target.remove(&key);
            }
            Value::Object(members) => merge_members(target.object_mut(&key), members),
            other => {
                target.insert(key, other);
            }
        }
    }
}

#[cfg(test)]
mod tests;

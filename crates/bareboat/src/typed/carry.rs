//! Merges a write in one version into an object stored in another.
//!
//! A write must not remove fields that its version does not have.

use bareboat_api::{Map, Value};

/// Returns `live` with the changes between `before` and `after`.
///
/// `before` is `live` converted to the client's version and back; `after` is the written object. Where both are equal,
/// `live` stays. Lists are replaced as a whole.
pub(super) fn carry(live: &Value, before: &Value, after: Value) -> Value {
    if *before == after {
        return live.clone();
    }
    match (live, before, after) {
        (Value::Object(live), Value::Object(before), Value::Object(after)) => {
            Value::Object(members(live, before, after))
        }
        (_, _, after) => after,
    }
}

fn members(live: &Map, before: &Map, after: Map) -> Map {
    let mut merged = live.clone();
    for (key, _) in before.iter() {
        if !after.contains_key(key) {
            merged.remove(key);
        }
    }
    for (key, value) in after {
        let value = match (live.get(&key), before.get(&key)) {
            (Some(live), Some(before)) => carry(live, before, value),
            (None, Some(before)) if *before == value => continue,
            _ => value,
        };
        merged.insert(key, value);
    }
    merged
}

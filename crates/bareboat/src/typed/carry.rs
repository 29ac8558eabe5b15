//! What a write in one version means for an object stored in another.
//!
//! A version that cannot say everything must not erase what it cannot say.

use bareboat_api::{Map, Value};

/// `live` with the changes that lead from `before` to `after`.
///
/// `before` is `live` as the writer's version shows it, brought back; `after` is what was written.
/// Where the two agree, nothing was meant to change, and `live` stays. Lists are taken as one.
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

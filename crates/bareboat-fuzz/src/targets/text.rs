//! Any bytes as JSON and as YAML: what is accepted can be written as JSON, and reads the same again.

use bareboat_api::Value;
use bareboat_wire::{json, yaml};

pub(crate) fn json(input: &[u8]) -> bool {
    let Ok(parsed) = json::parse(input) else {
        return false;
    };
    same_again(&parsed.value);
    true
}

pub(crate) fn yaml(input: &[u8]) -> bool {
    let Ok(parsed) = yaml::parse(input) else {
        return false;
    };
    same_again(&parsed.value);
    true
}

/// Writes a value as JSON and reads it.
pub(super) fn same_again(value: &Value) {
    let text = value.to_json();
    match json::parse(&text) {
        Ok(again) => assert!(is_same(value, &again.value), "{value}\n{}", again.value),
        Err(error) => panic!("{error}: {}", String::from_utf8_lossy(&text)),
    }
}

fn is_same(value: &Value, again: &Value) -> bool {
    match (value, again) {
        // Beyond 2^53 the shortest digits of a float are those of an integer close to it, as in Go.
        (Value::Float(float), Value::Int(whole)) => *whole as f64 == *float,
        (Value::Array(items), Value::Array(others)) => {
            items.len() == others.len()
                && items
                    .iter()
                    .zip(others)
                    .all(|(item, other)| is_same(item, other))
        }
        (Value::Object(members), Value::Object(others)) => {
            let has = |(key, value)| others.get(key).is_some_and(|other| is_same(value, other));
            members.len() == others.len() && members.iter().all(has)
        }
        _ => value == again,
    }
}

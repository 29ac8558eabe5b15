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
        Ok(again) => assert_eq!(&again.value, value),
        Err(error) => panic!("{error}: {}", String::from_utf8_lossy(&text)),
    }
}

//! Keys of mappings: JSON knows strings only, so others become their text.

use super::scalar::Plain;
use bareboat_api::field::go_quote;
use bareboat_api::value::write_float;
use bareboat_api::{Str, Value};

/// A key as JSON has it, and as complaints show it.
pub(super) struct Key {
    pub(super) text: Str,
    pub(super) shown: String,
}

impl Key {
    /// The key that a scalar stands for; nothing for `null` and numbers that are none.
    pub(super) fn from_value(value: &Value) -> Option<Key> {
        let text = match value {
            Value::String(text) => {
                let shown = go_quote(text);
                let text = text.clone();
                return Some(Key { text, shown });
            }
            Value::Bool(value) => Str::from(if *value { "true" } else { "false" }),
            Value::Int(value) => Str::from(value.to_string()),
            Value::Float(value) => {
                let mut out = Vec::new();
                write_float(*value, &mut out);
                Str::from(String::from_utf8_lossy(&out).into_owned())
            }
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
        };
        let shown = text.to_string();
        Some(Key { text, shown })
    }
}

/// Whether a plain scalar in the place of a key asks for a merge.
pub(super) fn is_merge(plain: &Plain) -> bool {
    *plain == Plain::Merge
}

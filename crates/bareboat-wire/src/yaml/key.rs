//! Keys of mappings: JSON keys are strings, so other scalars become their text.

use super::scalar::Plain;
use bareboat_api::field::go_quote;
use bareboat_api::value::write_float;
use bareboat_api::{Str, Value};

/// A key as in JSON, and as shown in errors.
pub(super) struct Key {
    pub(super) text: Str,
    pub(super) shown: String,
}

impl Key {
    /// Returns the key for a scalar; `None` for `null` and numbers that are not finite.
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

/// Returns whether a plain scalar used as a key is a merge key.
pub(super) fn is_merge(plain: &Plain) -> bool {
    *plain == Plain::Merge
}

//! Limits the memory of a decoded message in proportion to its bytes.

use super::ProtoError;
use bareboat_api::{Str, Value};

/// The memory of a decoded message per byte. Two bytes of protobuf can encode a whole object.
const FACTOR: usize = 16;
/// The memory that every message may take, so that small messages are never rejected.
const ALWAYS: usize = 2 << 20;
/// The overhead of an allocation in bytes.
pub(super) const ALLOCATION: usize = 16;

/// The bytes that may still be spent.
pub(super) struct Budget {
    limit: usize,
    left: usize,
}

impl Budget {
    /// Returns the budget of a message of `bytes` bytes.
    pub(super) fn of(bytes: usize) -> Budget {
        let limit = ALWAYS.max(bytes.saturating_mul(FACTOR));
        Budget { limit, left: limit }
    }

    pub(super) fn spend(&mut self, bytes: usize) -> Result<(), ProtoError> {
        match self.left.checked_sub(bytes) {
            Some(left) => self.left = left,
            None => return Err(ProtoError::too_large(self.limit)),
        }
        Ok(())
    }
}

/// Returns the approximate memory of a value.
pub(super) fn weight(value: &Value) -> usize {
    let heap = |text: &str| match text.len() > size_of::<Str>() {
        true => ALLOCATION + text.len(),
        false => 0,
    };
    let inside = match value {
        Value::String(text) => heap(text),
        Value::Array(items) => ALLOCATION + items.iter().map(weight).sum::<usize>(),
        Value::Object(map) => {
            let members = map.iter();
            let members = members.map(|(key, value)| size_of::<Str>() + heap(key) + weight(value));
            ALLOCATION + members.sum::<usize>()
        }
        _ => 0,
    };
    size_of::<Value>() + inside
}

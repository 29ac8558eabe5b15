//! The memory that a decoded message may take, in proportion to its bytes.

use super::ProtoError;
use bareboat_api::{Str, Value};

/// Two bytes of protobuf can stand for a whole object, so what a message turns into may take this many times its bytes,
const FACTOR: usize = 16;
/// or this much, if that is more: small messages are never refused.
const ALWAYS: usize = 2 << 20;
/// What an allocation costs beside its bytes.
pub(super) const ALLOCATION: usize = 16;

/// Bytes that may still be spent.
pub(super) struct Budget {
    limit: usize,
    left: usize,
}

impl Budget {
    /// The budget of a message of so many bytes.
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

/// Roughly the memory of a value.
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

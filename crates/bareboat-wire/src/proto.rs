//! Protobuf in Kubernetes' dialect: messages driven by the table of facts, their envelope, watch
//! frames and lists.
//!
//! The output equals that of the Go server: members in the order of their numbers, non-pointer
//! members even when empty, pointers only when set, maps sorted by key. The caller knows which
//! message belongs to a kind.

mod budget;
mod decode;
mod encode;
mod envelope;
mod frames;
pub(crate) mod raw;

pub use decode::{decode_message, decode_object};
pub use encode::{encode_message, encode_object};
pub use envelope::{Envelope, MAGIC, decode_envelope, encode_envelope};
pub use frames::{LIST_TAIL, list_item_len, write_list_head, write_list_item, write_watch_frame};

use std::fmt;

/// The error of bytes that are not a valid message, or of a value that cannot be encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtoError {
    /// The fields around the error, innermost first.
    path: Vec<String>,
    message: String,
    too_large: bool,
}

impl ProtoError {
    pub(crate) fn new(message: impl Into<String>) -> ProtoError {
        ProtoError {
            path: Vec::new(),
            message: message.into(),
            too_large: false,
        }
    }

    /// Returns the error of a message that would take more memory than its size allows.
    #[cold]
    pub(crate) fn too_large(limit: usize) -> ProtoError {
        ProtoError {
            too_large: true,
            ..ProtoError::new(format!(
                "the decoded message would take more than {limit} bytes"
            ))
        }
    }

    /// Returns whether the message was rejected for its memory use, and not for its content.
    pub fn is_too_large(&self) -> bool {
        self.too_large
    }

    /// Adds the enclosing field to the path of the error.
    pub(crate) fn inside(mut self, field: &str) -> ProtoError {
        self.path.push(field.to_owned());
        self
    }
}

impl fmt::Display for ProtoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, field) in self.path.iter().rev().enumerate() {
            if index > 0 {
                f.write_str(".")?;
            }
            f.write_str(field)?;
        }
        if !self.path.is_empty() {
            f.write_str(": ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for ProtoError {}

#[cfg(test)]
mod tests;

//! Protobuf as Kubernetes speaks it: messages driven by the table of facts, the envelope around
//! them, watch frames and lists.
//!
//! Bytes come out as the Go server writes them: members in the order of their numbers, plain
//! members even when they are empty, pointers only when they are set, maps sorted by key. Which
//! message belongs to a kind is for the caller to say.

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

/// Bytes that are no such message, or a value that cannot become one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtoError {
    /// The fields around the fault, innermost first.
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

    /// The message would take more memory than its size allows.
    #[cold]
    pub(crate) fn too_large(limit: usize) -> ProtoError {
        ProtoError {
            too_large: true,
            ..ProtoError::new(format!(
                "the decoded message would take more than {limit} bytes"
            ))
        }
    }

    /// Whether the message was refused for the memory it would take, and not for what it says.
    pub fn is_too_large(&self) -> bool {
        self.too_large
    }

    /// The same fault, seen from one member further out.
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

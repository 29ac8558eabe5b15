//! Protobuf encoding of types that belong to no kind: Status, list metadata, partial metadata, options.
//!
//! Another crate holds the table of messages; the server gets a function that looks them up.

use bareboat_api::facts::{Message, MessageRef};
use bareboat_api::{Status, Value};
use bareboat_wire::encode::ListMeta;
use bareboat_wire::proto;
use bytes::Bytes;

const META: &str = "k8s.io.apimachinery.pkg.apis.meta.v1.";

/// Finds a message by its full name.
pub type MessageByName = fn(&str) -> Option<MessageRef>;

/// The messages of `meta/v1`, if a lookup function was given.
#[derive(Clone, Copy, Default)]
pub struct MetaMessages {
    lookup: Option<MessageByName>,
}

bareboat_api::opaque_debug!(MetaMessages);

impl MetaMessages {
    /// Returns the messages found by `lookup`.
    pub fn new(lookup: MessageByName) -> MetaMessages {
        MetaMessages {
            lookup: Some(lookup),
        }
    }

    /// Returns whether protobuf is supported.
    pub fn available(&self) -> bool {
        self.lookup.is_some()
    }

    /// Returns a message of `meta/v1`.
    pub fn meta(&self, name: &str) -> Option<MessageRef> {
        (self.lookup?)(&format!("{META}{name}"))
    }

    /// Returns a message by its full name.
    pub fn named(&self, name: &str) -> Option<MessageRef> {
        (self.lookup?)(name)
    }

    /// Encodes a Status with its envelope.
    pub fn status(&self, value: &Value) -> Option<Bytes> {
        self.enveloped("Status", "v1", value)
    }

    /// Encodes a value of a `meta/v1` type with its envelope.
    pub fn enveloped(&self, kind: &str, api_version: &str, value: &Value) -> Option<Bytes> {
        let raw = encode(self.meta(kind)?.get(), value).ok()?;
        Some(envelope(api_version, kind, &raw))
    }
}

/// Encodes a message without an envelope.
pub(crate) fn encode(message: &Message, value: &Value) -> Result<Vec<u8>, Status> {
    let mut out = Vec::with_capacity(512);
    proto::encode_message(message, value, &mut out).map_err(Status::failed)?;
    Ok(out)
}

/// Wraps an encoded message in its envelope.
pub(crate) fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(raw.len() + 64);
    let written = proto::encode_envelope(api_version, kind, &mut out, |out| {
        out.extend_from_slice(raw);
        Ok(())
    });
    debug_assert!(written.is_ok(), "copying bytes cannot fail");
    out.into()
}

/// Encodes a list of messages with its envelope.
pub(crate) fn list(api_version: &str, kind: &str, meta: &ListMeta<'_>, items: &[Bytes]) -> Bytes {
    let size = items
        .iter()
        .map(|item| proto::list_item_len(item.len()))
        .sum();
    let mut out = Vec::with_capacity(size + 128);
    proto::write_list_head(api_version, kind, meta, size, &mut out);
    for item in items {
        proto::write_list_item(item, &mut out);
    }
    out.extend_from_slice(proto::LIST_TAIL);
    out.into()
}

/// Encodes a watch event around an object that has its envelope.
pub(crate) fn watch_frame(event_type: &str, object: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(object.len() + 32);
    proto::write_watch_frame(event_type, object, &mut out);
    out.into()
}

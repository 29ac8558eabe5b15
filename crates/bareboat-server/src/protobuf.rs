//! Protobuf of the types that belong to no kind: Status, lists' metadata, partial metadata, options.
//!
//! The table of facts is data of another crate; the server is handed a way to look messages up.

use bareboat_api::facts::{Message, MessageRef};
use bareboat_api::{Status, Value};
use bareboat_wire::encode::ListMeta;
use bareboat_wire::proto;
use bytes::Bytes;

const META: &str = "k8s.io.apimachinery.pkg.apis.meta.v1.";

/// Finds a message of the table of facts by its full name.
pub type Lookup = fn(&str) -> Option<MessageRef>;

/// The messages of `meta/v1`, where a table of facts was given.
#[derive(Clone, Copy, Default)]
pub struct MetaMessages {
    lookup: Option<Lookup>,
}

impl MetaMessages {
    /// Messages found by `lookup`.
    pub fn new(lookup: Lookup) -> MetaMessages {
        MetaMessages {
            lookup: Some(lookup),
        }
    }

    /// Whether protobuf is spoken at all.
    pub fn available(&self) -> bool {
        self.lookup.is_some()
    }

    /// A message of `meta/v1`.
    pub fn meta(&self, name: &str) -> Option<MessageRef> {
        (self.lookup?)(&format!("{META}{name}"))
    }

    /// A message by its full name.
    pub fn named(&self, name: &str) -> Option<MessageRef> {
        (self.lookup?)(name)
    }

    /// A Status in its envelope.
    pub fn status(&self, value: &Value) -> Option<Bytes> {
        self.enveloped("Status", "v1", value)
    }

    /// A value of a `meta/v1` type in its envelope.
    pub fn enveloped(&self, kind: &str, api_version: &str, value: &Value) -> Option<Bytes> {
        let raw = encode(self.meta(kind)?.get(), value).ok()?;
        Some(envelope(api_version, kind, &raw))
    }
}

/// A bare message.
pub(crate) fn encode(message: &Message, value: &Value) -> Result<Vec<u8>, Status> {
    let mut out = Vec::with_capacity(512);
    proto::encode_message(message, value, &mut out).map_err(Status::internal)?;
    Ok(out)
}

/// A message in its envelope.
pub(crate) fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(raw.len() + 64);
    let written = proto::encode_envelope(api_version, kind, &mut out, |out| {
        out.extend_from_slice(raw);
        Ok(())
    });
    debug_assert!(written.is_ok(), "copying bytes cannot fail");
    out.into()
}

/// A list of messages in its envelope.
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

/// A watch event around an object in its envelope.
pub(crate) fn watch_frame(told: &str, object: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(object.len() + 32);
    proto::write_watch_frame(told, object, &mut out);
    out.into()
}

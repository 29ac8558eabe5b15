//! Joins encoded messages to lists and watch events.

use super::envelope::{ENVELOPE_TAIL, write_envelope_head};
use super::raw::{Wire, varint_len, write_bytes, write_number, write_tag, write_varint};
use crate::encode::ListMeta;

/// Returns the number of bytes that an item with a message of `body` bytes takes in a list.
pub fn list_item_len(body: usize) -> usize {
    1 + varint_len(body as u64) + body
}

/// Appends the head of a list whose items take `items` bytes, as [`list_item_len`] counts them.
///
/// The caller appends each item with [`write_list_item`], then [`LIST_TAIL`]. The head contains the
/// total length, so that a list can be streamed without building it first.
pub fn write_list_head(
    api_version: &str,
    kind: &str,
    meta: &ListMeta<'_>,
    items: usize,
    out: &mut Vec<u8>,
) {
    write_envelope_head(api_version, kind, out);
    let mut metadata = Vec::new();
    write_bytes(1, b"", &mut metadata);
    write_bytes(2, meta.resource_version.as_bytes(), &mut metadata);
    write_bytes(3, meta.continue_token.as_bytes(), &mut metadata);
    if let Some(count) = meta.remaining_item_count {
        write_number(4, count as u64, &mut metadata);
    }
    write_tag(2, Wire::Bytes, out);
    write_varint((list_item_len(metadata.len()) + items) as u64, out);
    write_bytes(1, &metadata, out);
}

/// Appends an item: an object's message without its envelope.
pub fn write_list_item(body: &[u8], out: &mut Vec<u8>) {
    write_bytes(2, body, out);
}

/// The bytes that close a list opened by [`write_list_head`].
pub const LIST_TAIL: &[u8] = ENVELOPE_TAIL;

/// Appends a watch event around an object in its envelope, preceded by the length of the frame.
pub fn write_watch_frame(event_type: &str, object: &[u8], out: &mut Vec<u8>) {
    let raw = 1 + varint_len(object.len() as u64) + object.len();
    let frame = 1
        + varint_len(event_type.len() as u64)
        + event_type.len()
        + 1
        + varint_len(raw as u64)
        + raw;
    out.extend_from_slice(&(frame as u32).to_be_bytes());
    write_bytes(1, event_type.as_bytes(), out);
    write_tag(2, Wire::Bytes, out);
    write_varint(raw as u64, out);
    write_bytes(1, object, out);
}

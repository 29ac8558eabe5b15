//! Encodes objects as JSON bytes with a fixed head, so that other code can splice them without
//! parsing.
//!
//! An object starts with `{"apiVersion":…,"kind":…,"metadata":{…`; its other members follow in
//! order. The stored form has no resourceVersion in the metadata. Inserting
//! `"resourceVersion":"N",` right after `"metadata":{` gives exactly the wire form.

use bareboat_api::value::write_string;
use bareboat_api::{Map, Value};
use bytes::Bytes;
use std::cell::RefCell;

/// The object as the store keeps it: without `metadata.resourceVersion`.
pub fn persisted(object: &Value) -> Bytes {
    collect(|out| write_object(object, Version::LeftOut, out))
}

/// Encodes the form clients receive: `metadata.resourceVersion`, if set, comes first in the
/// metadata.
pub fn wire(object: &Value) -> Bytes {
    collect(|out| write_object(object, Version::First, out))
}

/// The metadata of a list.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListMeta<'a> {
    /// The resourceVersion of the list.
    pub resource_version: &'a str,
    /// The token for the next page; empty on the last page.
    pub continue_token: &'a str,
    /// The number of items on later pages, if known.
    pub remaining_item_count: Option<i64>,
}

/// Appends the head of a list; the caller appends the items, joined by commas, and [`LIST_TAIL`].
pub fn write_list_head(api_version: &str, kind: &str, meta: &ListMeta<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"apiVersion\":");
    write_string(api_version, out);
    out.extend_from_slice(b",\"kind\":");
    write_string(kind, out);
    out.extend_from_slice(b",\"metadata\":{");
    let mut member = Separator::default();
    if !meta.resource_version.is_empty() {
        member.write(out);
        out.extend_from_slice(b"\"resourceVersion\":");
        write_string(meta.resource_version, out);
    }
    if !meta.continue_token.is_empty() {
        member.write(out);
        out.extend_from_slice(b"\"continue\":");
        write_string(meta.continue_token, out);
    }
    if let Some(count) = meta.remaining_item_count {
        member.write(out);
        out.extend_from_slice(b"\"remainingItemCount\":");
        out.extend_from_slice(itoa::Buffer::new().format(count).as_bytes());
    }
    out.extend_from_slice(b"},\"items\":[");
}

/// The bytes that close a list opened by [`write_list_head`].
pub const LIST_TAIL: &[u8] = b"]}";

#[derive(Clone, Copy, PartialEq)]
enum Version {
    LeftOut,
    First,
}

fn write_object(object: &Value, version: Version, out: &mut Vec<u8>) {
    let Value::Object(map) = object else {
        object.write_json(out);
        return;
    };
    out.push(b'{');
    let mut separator = Separator::default();
    for key in ["apiVersion", "kind", "metadata"] {
        let Some(value) = map.get(key) else { continue };
        separator.write(out);
        write_key(key, out);
        match value {
            Value::Object(metadata) if key == "metadata" => write_metadata(metadata, version, out),
            other => other.write_json(out),
        }
    }
    for (key, value) in map.iter() {
        if matches!(key, "apiVersion" | "kind" | "metadata") {
            continue;
        }
        separator.write(out);
        write_key(key, out);
        value.write_json(out);
    }
    out.push(b'}');
}

fn write_metadata(metadata: &Map, version: Version, out: &mut Vec<u8>) {
    const KEY: &str = "resourceVersion";
    out.push(b'{');
    let mut separator = Separator::default();
    if version == Version::First
        && let Some(value) = metadata.get(KEY)
    {
        separator.write(out);
        write_key(KEY, out);
        value.write_json(out);
    }
    for (key, value) in metadata.iter().filter(|(key, _)| *key != KEY) {
        separator.write(out);
        write_key(key, out);
        value.write_json(out);
    }
    out.push(b'}');
}

fn write_key(key: &str, out: &mut Vec<u8>) {
    write_string(key, out);
    out.push(b':');
}

/// Writes a comma before every member but the first.
#[derive(Default)]
struct Separator {
    started: bool,
}

impl Separator {
    fn write(&mut self, out: &mut Vec<u8>) {
        if self.started {
            out.push(b',');
        }
        self.started = true;
    }
}

/// Encodes into a buffer of the thread and copies the result, so that bytes which stay in the cache
/// occupy exactly their length.
fn collect(write: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    const KEEP: usize = 64 * 1024;
    thread_local! {
        static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    BUFFER.with_borrow_mut(|buffer| {
        buffer.clear();
        write(buffer);
        let bytes = Bytes::copy_from_slice(buffer);
        if buffer.capacity() > KEEP {
            *buffer = Vec::new();
        }
        bytes
    })
}

#[cfg(test)]
mod tests;

//! One object in memory: its key, its revision and its wire bytes, encoded once and shared by every reader.
//!
//! Bytes and revisions only. What the bytes mean beyond the metadata is the server's knowledge.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use crate::facets::Facets;
use crate::layout::{Layout, LayoutError};
use crate::value::DAMAGED;
use crate::variants::{VariantKey, VariantSlots};

const MEMBER: &[u8] = br#""resourceVersion":""#;
const MEMBER_END: &[u8] = br#"","#;

/// An object at one revision.
pub struct Entry {
    key: Arc<str>,
    rev: u64,
    json: Bytes,
    type_meta_len: u16,
    metadata_at: u16,
    rv_digits: u8,
    shape: AtomicU64,
    facets: OnceLock<Box<Facets>>,
    pub(crate) variants: VariantSlots,
}

impl Entry {
    /// Builds the entry of `stored` at `rev`, splicing the resourceVersion in.
    pub fn new(key: Arc<str>, rev: u64, stored: &[u8], shape: u64) -> Result<Self, LayoutError> {
        Ok(Self::with_layout(
            key,
            rev,
            stored,
            Layout::locate(stored)?,
            shape,
        ))
    }

    pub(crate) fn with_layout(
        key: Arc<str>,
        rev: u64,
        stored: &[u8],
        layout: Layout,
        shape: u64,
    ) -> Self {
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(rev).as_bytes();
        let (head, tail) = stored.split_at(layout.metadata_at as usize);
        let json = join(&[head, MEMBER, digits, MEMBER_END, tail]);
        Self {
            key,
            rev,
            json,
            type_meta_len: layout.type_meta_len,
            metadata_at: layout.metadata_at,
            rv_digits: digits.len() as u8,
            shape: AtomicU64::new(shape),
            facets: OnceLock::new(),
            variants: VariantSlots::default(),
        }
    }

    /// The key: `namespace/name`, or `name` for what has no namespace.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The key, to be kept by others.
    pub fn shared_key(&self) -> &Arc<str> {
        &self.key
    }

    /// The namespace half of the key, if it has one.
    pub fn namespace(&self) -> Option<&str> {
        self.key.split_once('/').map(|(ns, _)| ns)
    }

    /// The name half of the key.
    pub fn name(&self) -> &str {
        self.key
            .split_once('/')
            .map_or(&*self.key, |(_, name)| name)
    }

    /// The revision at which this state was written.
    pub fn revision(&self) -> u64 {
        self.rev
    }

    /// The wire bytes in the storage version, with resourceVersion.
    pub fn json(&self) -> &Bytes {
        &self.json
    }

    /// The wire bytes in two slices without the opening type meta: an item of a built-in list.
    pub fn without_type_meta(&self) -> (&'static [u8], &[u8]) {
        (b"{", &self.json[self.type_meta_len as usize..])
    }

    /// The wire bytes with another resourceVersion: what a DELETED or selector-exit event carries.
    pub fn json_at_revision(&self, rev: u64) -> Bytes {
        if rev == self.rev {
            return self.json.clone();
        }
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(rev).as_bytes();
        let start = self.metadata_at as usize + MEMBER.len();
        join(&[
            &self.json[..start],
            digits,
            &self.json[start + self.rv_digits as usize..],
        ])
    }

    /// The stored bytes in two slices: the wire bytes without resourceVersion.
    pub fn stored(&self) -> (&[u8], &[u8]) {
        let at = self.metadata_at as usize;
        (&self.json[..at], &self.json[at + self.member_len()..])
    }

    /// Whether `stored` is byte for byte what is stored: the exact no-op comparison.
    pub fn stored_eq(&self, stored: &[u8]) -> bool {
        let (head, tail) = self.stored();
        stored.len() == head.len() + tail.len()
            && stored.starts_with(head)
            && stored.ends_with(tail)
    }

    /// Whether what was stored cannot be read any more. Such an entry holds a name and nothing else.
    pub fn is_damaged(&self) -> bool {
        self.json.starts_with(DAMAGED)
    }

    /// Opaque hash of the schema these bytes were shaped under; 0 if that is not known.
    pub fn shape(&self) -> u64 {
        self.shape.load(Ordering::Relaxed)
    }

    /// Remembers the schema hash under which these bytes were found to be in shape.
    pub fn set_shape(&self, shape: u64) {
        self.shape.store(shape, Ordering::Relaxed);
    }

    /// What the metadata says, parsed when first asked for and then kept.
    pub fn facets(&self) -> &Facets {
        self.facets.get_or_init(|| Box::new(self.parse_facets()))
    }

    /// The same for those who look once: what nobody kept is not kept for them either. It is some hundred bytes.
    pub fn glance(&self) -> Cow<'_, Facets> {
        match self.facets.get() {
            Some(facets) => Cow::Borrowed(facets),
            None => Cow::Owned(self.parse_facets()),
        }
    }

    fn parse_facets(&self) -> Facets {
        Facets::parse(&self.json[self.metadata_at as usize - 1..])
    }

    /// Another encoding of this entry, if one was kept (see [`Variants::keep`](crate::Variants::keep)).
    pub fn variant(&self, key: VariantKey) -> Option<Bytes> {
        self.variants.get(key)
    }

    fn member_len(&self) -> usize {
        MEMBER.len() + self.rv_digits as usize + MEMBER_END.len()
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Entry({} @{})", self.key, self.rev)
    }
}

fn join(parts: &[&[u8]]) -> Bytes {
    let mut out = Vec::with_capacity(parts.iter().map(|part| part.len()).sum());
    for part in parts {
        out.extend_from_slice(part);
    }
    out.into()
}

#[cfg(test)]
mod tests;

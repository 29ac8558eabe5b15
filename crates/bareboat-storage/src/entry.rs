//! One object in memory: its key, its revision and its wire bytes, encoded once and shared by all
//! readers.
//!
//! This module reads only the metadata of the bytes; the server interprets the rest.

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
    /// Builds the entry of `stored` at `rev` and inserts the resourceVersion.
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

    /// Returns the key: `namespace/name`, or `name` for cluster-scoped objects.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the key as a shared pointer.
    pub fn shared_key(&self) -> &Arc<str> {
        &self.key
    }

    /// Returns the namespace part of the key, if it has one.
    pub fn namespace(&self) -> Option<&str> {
        self.key.split_once('/').map(|(ns, _)| ns)
    }

    /// Returns the name part of the key.
    pub fn name(&self) -> &str {
        self.key
            .split_once('/')
            .map_or(&*self.key, |(_, name)| name)
    }

    /// Returns the revision at which this state was written.
    pub fn revision(&self) -> u64 {
        self.rev
    }

    /// Returns the wire bytes in the storage version, with resourceVersion.
    pub fn json(&self) -> &Bytes {
        &self.json
    }

    /// Returns the wire bytes in two slices without the type meta: an item of a built-in list.
    pub fn without_type_meta(&self) -> (&'static [u8], &[u8]) {
        (b"{", &self.json[self.type_meta_len as usize..])
    }

    /// Returns the wire bytes with another resourceVersion: the object of a DELETED event or of a
    /// selector exit.
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

    /// Returns the stored bytes in two slices: the wire bytes without resourceVersion.
    pub fn persisted(&self) -> (&[u8], &[u8]) {
        let at = self.metadata_at as usize;
        (&self.json[..at], &self.json[at + self.member_len()..])
    }

    /// Returns whether `stored` equals the stored bytes exactly. This comparison detects writes that change nothing.
    pub fn persisted_eq(&self, stored: &[u8]) -> bool {
        let (head, tail) = self.persisted();
        stored.len() == head.len() + tail.len()
            && stored.starts_with(head)
            && stored.ends_with(tail)
    }

    /// Returns whether the stored value is damaged. Such an entry has a name and no other content.
    pub fn is_damaged(&self) -> bool {
        self.json.starts_with(DAMAGED)
    }

    /// Returns the opaque hash of the schema under which these bytes were normalised; 0 if unknown.
    pub fn shape(&self) -> u64 {
        self.shape.load(Ordering::Relaxed)
    }

    /// Stores the schema hash under which these bytes were found to be normalised.
    pub fn set_shape(&self, shape: u64) {
        self.shape.store(shape, Ordering::Relaxed);
    }

    /// Returns the parsed metadata; parses it at the first call and keeps it.
    pub fn facets(&self) -> &Facets {
        self.facets.get_or_init(|| Box::new(self.parse_facets()))
    }

    /// Returns the parsed metadata without keeping it, for single uses. Kept metadata takes some
    /// hundred bytes.
    pub fn glance(&self) -> Cow<'_, Facets> {
        match self.facets.get() {
            Some(facets) => Cow::Borrowed(facets),
            None => Cow::Owned(self.parse_facets()),
        }
    }

    fn parse_facets(&self) -> Facets {
        Facets::parse(&self.json[self.metadata_at as usize - 1..])
    }

    /// Returns another encoding of this entry, if it is cached (see
    /// [`Variants::keep`](crate::Variants::keep)).
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

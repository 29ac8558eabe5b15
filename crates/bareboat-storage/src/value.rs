//! Value bytes for backends: the object without its resourceVersion.

use std::sync::Arc;

use bytes::Bytes;

use crate::entry::Entry;
use crate::layout::LayoutError;

/// The start of the placeholder for a damaged value. No object has such an apiVersion, so a placeholder cannot be
/// confused with an object.
pub(crate) const DAMAGED: &[u8] = br#"{"apiVersion":"!","kind":"Damaged""#;

/// The stored bytes of one object.
///
/// Either owned bytes, or a share of an entry's wire bytes without the resourceVersion. So a backend in memory needs no
/// second copy. An engine that writes files reads two slices.
#[derive(Clone, Debug)]
pub struct Value(ValueBytes);

#[derive(Clone, Debug)]
enum ValueBytes {
    Whole(Bytes),
    Shared(Arc<Entry>),
}

impl Value {
    /// Returns a value with exactly the stored bytes.
    pub fn new(stored: Bytes) -> Self {
        Self(ValueBytes::Whole(stored))
    }

    /// Returns the value of an entry, sharing its memory.
    pub fn of(entry: Arc<Entry>) -> Self {
        Self(ValueBytes::Shared(entry))
    }

    /// Returns the value of a damaged object stored under `key`. It has only a name.
    pub fn damaged(key: &str) -> Self {
        let mut stored = DAMAGED.to_vec();
        stored.extend_from_slice(br#","metadata":{"name":""#);
        let name = key.rsplit('/').next().unwrap_or(key);
        for character in name.chars() {
            match character {
                '"' | '\\' => stored.extend_from_slice(&[b'\\', character as u8]),
                plain if plain >= ' ' => {
                    stored.extend_from_slice(plain.encode_utf8(&mut [0; 4]).as_bytes());
                }
                _ => stored.push(b'?'),
            }
        }
        stored.extend_from_slice(br#""}}"#);
        Self::new(stored.into())
    }

    /// Returns whether this is a value made by [`Value::damaged`].
    pub fn is_damaged(&self) -> bool {
        self.parts().0.starts_with(DAMAGED)
    }

    /// Returns two slices that, joined, are the stored bytes.
    pub fn parts(&self) -> (&[u8], &[u8]) {
        match &self.0 {
            ValueBytes::Whole(bytes) => (bytes, &[]),
            ValueBytes::Shared(entry) => entry.persisted(),
        }
    }

    /// Returns the length of the stored bytes.
    pub fn len(&self) -> usize {
        let (head, tail) = self.parts();
        head.len() + tail.len()
    }

    /// Returns whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends the stored bytes to `out`.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        let (head, tail) = self.parts();
        out.reserve(head.len() + tail.len());
        out.extend_from_slice(head);
        out.extend_from_slice(tail);
    }

    /// Returns the stored bytes in one piece, copied if they are shared with an entry.
    pub fn to_bytes(&self) -> Bytes {
        match &self.0 {
            ValueBytes::Whole(bytes) => bytes.clone(),
            ValueBytes::Shared(_) => {
                let mut out = Vec::new();
                self.append_to(&mut out);
                out.into()
            }
        }
    }

    /// Returns the entry whose memory this value shares, if it has revision `rev`.
    pub(crate) fn shared_at(&self, rev: u64) -> Option<Arc<Entry>> {
        match &self.0 {
            ValueBytes::Shared(entry) if entry.revision() == rev => Some(entry.clone()),
            _ => None,
        }
    }

    /// Returns the entry of this value at `rev`.
    pub(crate) fn entry(&self, key: &Arc<str>, rev: u64) -> Result<Arc<Entry>, LayoutError> {
        match &self.0 {
            ValueBytes::Shared(entry) if entry.revision() == rev => Ok(entry.clone()),
            ValueBytes::Shared(_) => {
                Ok(Arc::new(Entry::new(key.clone(), rev, &self.to_bytes(), 0)?))
            }
            ValueBytes::Whole(bytes) => Ok(Arc::new(Entry::new(key.clone(), rev, bytes, 0)?)),
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.to_bytes() == other.to_bytes()
    }
}

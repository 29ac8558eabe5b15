//! Value bytes as a backend sees them: the object without its resourceVersion.

use std::sync::Arc;

use bytes::Bytes;

use crate::entry::Entry;
use crate::layout::LayoutError;

/// How the placeholder of a value begins that cannot be read. No object has such an apiVersion, so that it is never taken
/// for an object.
pub(crate) const DAMAGED: &[u8] = br#"{"apiVersion":"!","kind":"Damaged""#;

/// The stored bytes of one object.
///
/// Either bytes of their own or a share of an entry, whose wire bytes without the resourceVersion they are: a backend
/// in memory holds no second copy, and an engine that writes files reads two slices.
#[derive(Clone, Debug)]
pub struct Value(Form);

#[derive(Clone, Debug)]
enum Form {
    Whole(Bytes),
    Shared(Arc<Entry>),
}

impl Value {
    /// A value that holds exactly the stored bytes.
    pub fn new(stored: Bytes) -> Self {
        Self(Form::Whole(stored))
    }

    /// The value of an entry, sharing its memory.
    pub fn of(entry: Arc<Entry>) -> Self {
        Self(Form::Shared(entry))
    }

    /// The value of an object that is stored under `key` but cannot be read any more. It holds nothing but its name.
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

    /// The two slices that, joined, are the stored bytes.
    pub fn parts(&self) -> (&[u8], &[u8]) {
        match &self.0 {
            Form::Whole(bytes) => (bytes, &[]),
            Form::Shared(entry) => entry.stored(),
        }
    }

    /// Length of the stored bytes.
    pub fn len(&self) -> usize {
        let (head, tail) = self.parts();
        head.len() + tail.len()
    }

    /// Whether there are no bytes at all.
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

    /// The stored bytes in one piece, copied if they are shared with an entry.
    pub fn to_bytes(&self) -> Bytes {
        match &self.0 {
            Form::Whole(bytes) => bytes.clone(),
            Form::Shared(_) => {
                let mut out = Vec::new();
                self.append_to(&mut out);
                out.into()
            }
        }
    }

    /// The entry whose memory this value shares, if that is the entry at `rev`.
    pub(crate) fn shared_at(&self, rev: u64) -> Option<Arc<Entry>> {
        match &self.0 {
            Form::Shared(entry) if entry.revision() == rev => Some(entry.clone()),
            _ => None,
        }
    }

    /// The entry of this value at `rev`.
    pub(crate) fn entry(&self, key: &Arc<str>, rev: u64) -> Result<Arc<Entry>, LayoutError> {
        match &self.0 {
            Form::Shared(entry) if entry.revision() == rev => Ok(entry.clone()),
            Form::Shared(_) => Ok(Arc::new(Entry::new(key.clone(), rev, &self.to_bytes(), 0)?)),
            Form::Whole(bytes) => Ok(Arc::new(Entry::new(key.clone(), rev, bytes, 0)?)),
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.to_bytes() == other.to_bytes()
    }
}

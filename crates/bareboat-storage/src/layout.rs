//! Finds the fixed parts of a stored value: the type meta and the start of the metadata.
//!
//! The encoder always writes `{"apiVersion":"…","kind":"…","metadata":{` first. This module finds
//! the offsets and does not read the rest.

/// The offsets in a stored value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The offset after the type meta members: `{` followed by the bytes from this offset is the object without these
    /// members.
    pub type_meta_len: u16,
    /// The offset after `"metadata":{`, where the resourceVersion is inserted.
    pub metadata_at: u16,
}

/// The error of a value that cannot be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("value does not begin with apiVersion, kind and non-empty metadata (at byte {at})")]
pub struct LayoutError {
    /// The offset at which the value differs from the expected form.
    pub at: usize,
}

impl Layout {
    /// Finds the offsets in `stored`, which must begin with
    /// `{"apiVersion":"…","kind":"…","metadata":{"`.
    pub fn locate(stored: &[u8]) -> Result<Self, LayoutError> {
        let at = literal(stored, 0, br#"{"apiVersion":""#)?;
        let at = string_end(stored, at)?;
        let at = literal(stored, at, br#","kind":""#)?;
        let at = string_end(stored, at)?;
        let type_meta_len = literal(stored, at, b",")?;
        let metadata_at = literal(stored, type_meta_len, br#""metadata":{"#)?;
        // A member must follow, because the inserted resourceVersion ends with a comma.
        literal(stored, metadata_at, b"\"")?;
        match (u16::try_from(type_meta_len), u16::try_from(metadata_at)) {
            (Ok(type_meta_len), Ok(metadata_at)) => Ok(Self {
                type_meta_len,
                metadata_at,
            }),
            _ => Err(LayoutError { at: metadata_at }),
        }
    }
}

fn literal(bytes: &[u8], at: usize, expected: &[u8]) -> Result<usize, LayoutError> {
    match bytes.get(at..) {
        Some(rest) if rest.starts_with(expected) => Ok(at + expected.len()),
        _ => Err(LayoutError { at }),
    }
}

/// Returns the offset after the closing quote of the string whose first character is at `at`.
fn string_end(bytes: &[u8], at: usize) -> Result<usize, LayoutError> {
    let mut here = at;
    while let Some(step) = bytes
        .get(here..)
        .and_then(|rest| memchr::memchr2(b'"', b'\\', rest))
    {
        here += step;
        if bytes[here] == b'"' {
            return Ok(here + 1);
        }
        here += 2;
    }
    Err(LayoutError { at })
}

#[cfg(test)]
mod tests;

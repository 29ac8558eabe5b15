//! Header blocks: names and values, and how they are encoded.

use crate::SpdyError;
use crate::dictionary::CHECKSUM;
use crate::inflate::LONGEST;
use bytes::{Buf as _, BufMut as _, BytesMut};

/// The most headers of one block.
const MOST: u32 = 256;
/// The most memory that the headers of one block take. Each value has its own copy of the name.
const BUDGET: usize = 4 * LONGEST;
/// The longest stored block of deflate.
const STORED: usize = 0xffff;
/// The zlib header: deflate, a window of 32 KiB, with a dictionary.
const ZLIB: [u8; 2] = [0x78, 0xbb];
/// An empty stored block. Readers deliver what came before it.
const FLUSH: [u8; 5] = [0, 0, 0, 0xff, 0xff];

/// The headers of a stream. Names are in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    /// Returns headers with these names and values.
    pub fn of(pairs: &[(&str, &str)]) -> Headers {
        let mut headers = Headers::default();
        for (name, value) in pairs {
            headers.add(name, value);
        }
        headers
    }

    /// Adds a header.
    pub fn add(&mut self, name: &str, value: &str) {
        self.0.push((name.to_ascii_lowercase(), value.to_owned()));
    }

    /// Returns the first value of a header.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut all = self.0.iter();
        let found = all.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Iterates over names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Parses a decompressed block. The values of one name are separated by zeros.
    pub(crate) fn parse(mut block: &[u8]) -> Result<Headers, SpdyError> {
        let bad = || SpdyError::Protocol("a header block ends early");
        let count = block.try_get_u32().map_err(|_| bad())?;
        if count > MOST {
            return Err(SpdyError::Protocol("a header block has too many headers"));
        }
        let mut headers = Headers::default();
        let mut left = BUDGET;
        for _ in 0..count {
            let name = text(&mut block).ok_or_else(bad)?;
            let values = text(&mut block).ok_or_else(bad)?;
            for value in values.split('\0') {
                let cost = name.len() + value.len() + 2 * size_of::<String>();
                left = left
                    .checked_sub(cost)
                    .ok_or(SpdyError::Protocol("a header block is too long"))?;
                headers.add(&name, value);
            }
        }
        if block.is_empty() {
            Ok(headers)
        } else {
            Err(SpdyError::Protocol("bytes follow a header block"))
        }
    }

    fn write(&self) -> Vec<u8> {
        let mut groups: Vec<(&str, String)> = Vec::new();
        for (name, value) in &self.0 {
            match groups.iter_mut().find(|(known, _)| known == name) {
                Some((_, values)) => {
                    values.push('\0');
                    values.push_str(value);
                }
                None => groups.push((name, value.clone())),
            }
        }
        let mut out = Vec::new();
        out.put_u32(groups.len() as u32);
        for (name, values) in groups {
            for part in [name, &values] {
                out.put_u32(part.len() as u32);
                out.extend_from_slice(part.as_bytes());
            }
        }
        out
    }
}

fn text(block: &mut &[u8]) -> Option<String> {
    let length = block.try_get_u32().ok()? as usize;
    let (text, rest) = block.split_at_checked(length)?;
    *block = rest;
    Some(String::from_utf8_lossy(text).into_owned())
}

/// Encodes header blocks of one direction.
///
/// The zlib stream consists of stored blocks: headers are short, and the length of compressed secrets would reveal them.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeaderEncoder {
    begun: bool,
}

impl HeaderEncoder {
    /// Appends a block.
    pub(crate) fn put(&mut self, headers: &Headers, out: &mut BytesMut) {
        if !self.begun {
            self.begun = true;
            out.extend_from_slice(&ZLIB);
            out.put_u32(CHECKSUM);
        }
        for piece in headers.write().chunks(STORED) {
            out.put_u8(0);
            out.put_u16_le(piece.len() as u16);
            out.put_u16_le(!(piece.len() as u16));
            out.extend_from_slice(piece);
        }
        out.extend_from_slice(&FLUSH);
    }
}

#[cfg(test)]
mod tests;

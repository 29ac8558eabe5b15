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
mod tests {
    use super::*;
    use crate::inflate::Inflater;
    use proptest::prelude::*;
    use zlib_rs::{Deflate, DeflateFlush};

    fn stored(encoder: &mut HeaderEncoder, headers: &Headers) -> BytesMut {
        let mut out = BytesMut::new();
        encoder.put(headers, &mut out);
        out
    }

    #[test]
    fn blocks_of_one_stream_are_read_in_order() {
        let (mut encoder, mut inflater) = (HeaderEncoder::default(), Inflater::new());
        for port in ["80", "8080"] {
            let headers = Headers::of(&[("streamType", "data"), ("port", port)]);
            let block = stored(&mut encoder, &headers);
            let plain = inflater.block(&block).expect("a block");
            let read = Headers::parse(&plain).expect("headers");
            assert_eq!(read.get("streamtype"), Some("data"));
            assert_eq!(read.get("Port"), Some(port));
        }
    }

    #[test]
    fn compressed_blocks_with_the_dictionary_are_read() {
        let mut deflate = Deflate::new(9, true, 15);
        let checksum = deflate
            .set_dictionary(&crate::dictionary::DICTIONARY)
            .expect("a dictionary");
        assert_eq!(checksum, CHECKSUM);
        let mut inflater = Inflater::new();
        for kind in ["error", "stdout"] {
            let headers = Headers::of(&[("streamtype", kind), ("user-agent", "x"), ("a", "")]);
            let mut block = vec![0; 512];
            let before = deflate.total_out();
            deflate
                .compress(&headers.write(), &mut block, DeflateFlush::SyncFlush)
                .expect("it compresses");
            block.truncate((deflate.total_out() - before) as usize);
            let plain = inflater.block(&block).expect("a block");
            assert_eq!(Headers::parse(&plain).expect("headers"), headers);
        }
    }

    #[test]
    fn a_block_that_grows_without_end_is_refused() {
        let mut deflate = Deflate::new(9, true, 15);
        let zeros = vec![0; 1 << 20];
        let mut block = vec![0; 1 << 16];
        deflate
            .compress(&zeros, &mut block, DeflateFlush::SyncFlush)
            .expect("it compresses");
        block.truncate(deflate.total_out() as usize);
        assert!(Inflater::new().block(&block).is_err());
    }

    #[test]
    fn a_long_name_with_many_values_is_refused() {
        let block = |name: &str, values: usize| {
            let mut headers = Headers::default();
            for _ in 0..values {
                headers.add(name, "");
            }
            headers.write()
        };
        let long = "n".repeat(LONGEST / 2);
        assert!(Headers::parse(&block(&long, 4)).is_ok());
        for refused in [block(&long, 1000), block("n", LONGEST / 2)] {
            assert!(refused.len() < LONGEST);
            let parsed = Headers::parse(&refused);
            let why = parsed.expect_err("it is refused").to_string();
            assert!(why.ends_with("a header block is too long"), "{why}");
        }
    }

    proptest! {
        #[test]
        fn headers_come_back(pairs in proptest::collection::vec(("[a-z]{1,8}", "[ -~]{0,40}"), 0..20)) {
            let mut headers = Headers::default();
            for (name, value) in &pairs {
                headers.add(name, value);
            }
            let block = stored(&mut HeaderEncoder::default(), &headers);
            let plain = Inflater::new().block(&block).expect("a block");
            let read = Headers::parse(&plain).expect("headers");
            let sorted = |headers: &Headers| {
                let mut all: Vec<(String, String)> = headers.0.clone();
                // Values of one name keep their order; names may move.
                all.sort_by(|a, b| a.0.cmp(&b.0));
                all
            };
            prop_assert_eq!(sorted(&read), sorted(&headers));
        }

        #[test]
        fn any_bytes_are_headers_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Headers::parse(&bytes);
            let _ = Inflater::new().block(&bytes);
        }
    }
}

//! The end of a backup file: a gzip member without text, whose extra field is the SHA-256 of everything before it.

use std::io::{self, Read, Write};

use sha2::{Digest as _, Sha256};

/// The header of the gzip member. Its extra field has 36 bytes: a field named `BB` with 32 bytes of data.
const BEFORE: [u8; 16] = [
    0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 255, 36, 0, b'B', b'B', 32, 0,
];
/// The compressed empty text, its checksum and its length.
const AFTER: [u8; 10] = [3, 0, 0, 0, 0, 0, 0, 0, 0, 0];
/// The length of a seal.
pub(super) const LEN: usize = BEFORE.len() + 32 + AFTER.len();

/// A writer that computes the seal of everything that is written through it.
pub(super) struct Sealing<W> {
    out: W,
    hash: Sha256,
}

impl<W: Write> Sealing<W> {
    pub(super) fn new(out: W) -> Self {
        let hash = Sha256::new();
        Self { out, hash }
    }

    /// Writes the seal, and returns the inner writer.
    pub(super) fn finish(mut self) -> io::Result<W> {
        let seal = seal(self.hash);
        self.out.write_all(&seal)?;
        self.out.flush()?;
        Ok(self.out)
    }
}

impl<W: Write> Write for Sealing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn seal(hash: Sha256) -> Vec<u8> {
    [&BEFORE[..], hash.finalize().as_slice(), &AFTER].concat()
}

/// Returns whether `sealed` is the seal of everything that `content` returns.
pub(super) fn fits(content: &mut impl Read, sealed: &[u8]) -> io::Result<bool> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match content.read(&mut buffer)? {
            0 => return Ok(seal(hash) == sealed),
            read => hash.update(&buffer[..read]),
        }
    }
}

/// Returns whether `bytes` have the form of a seal. Does not check the digest.
pub(super) fn is_seal(bytes: &[u8]) -> bool {
    bytes.len() == LEN && bytes.starts_with(&BEFORE) && bytes.ends_with(&AFTER)
}

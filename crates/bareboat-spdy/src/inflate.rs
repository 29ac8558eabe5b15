//! Decompresses header blocks: one zlib stream per direction, with the preset dictionary, flushed after every block.

use crate::SpdyError;
use crate::dictionary::DICTIONARY;
use zlib_rs::{Inflate, InflateError, InflateFlush, Status};

/// The zlib window of any peer.
const WINDOW_BITS: u8 = 15;
/// How many bytes are decompressed in one step.
const STEP: usize = 2 * 1024;
/// The longest header block, decompressed. Those of Kubernetes have about a hundred bytes.
pub(crate) const LONGEST: usize = 8 * 1024;

/// The state of one direction.
pub(crate) struct Inflater {
    inner: Inflate,
}

impl Inflater {
    pub(crate) fn new() -> Inflater {
        Inflater {
            inner: Inflate::new(true, WINDOW_BITS),
        }
    }

    /// Decompresses one block.
    pub(crate) fn block(&mut self, mut input: &[u8]) -> Result<Vec<u8>, SpdyError> {
        let bad = || SpdyError::Protocol("a header block is not compressed as SPDY/3 requires");
        let mut out = Vec::new();
        let mut step = [0; STEP];
        loop {
            let (consumed, produced) = (self.inner.total_in(), self.inner.total_out());
            let result = self
                .inner
                .decompress(input, &mut step, InflateFlush::SyncFlush);
            let consumed = (self.inner.total_in() - consumed) as usize;
            let produced = (self.inner.total_out() - produced) as usize;
            input = input.get(consumed..).ok_or_else(bad)?;
            out.extend_from_slice(step.get(..produced).ok_or_else(bad)?);
            if out.len() > LONGEST {
                return Err(SpdyError::Protocol("a header block is too long"));
            }
            match result {
                Err(InflateError::NeedDict { .. }) => {
                    self.inner.set_dictionary(&DICTIONARY).map_err(|_| bad())?;
                    continue;
                }
                Ok(Status::Ok | Status::BufError) => {}
                // The stream ends with the connection.
                Ok(Status::StreamEnd) | Err(_) => return Err(bad()),
            }
            if input.is_empty() && produced < STEP {
                return Ok(out);
            }
            if consumed == 0 && produced == 0 {
                return Err(bad());
            }
        }
    }
}

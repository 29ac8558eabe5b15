//! The memory of decoded bodies. A few bytes of JSON can become many of memory, so large bodies are counted by an
//! estimate of what they become, with a limit for all requests together.
//!
//! Requests that wait for another server have a limit of their own: otherwise a server that does not answer would keep
//! all other large bodies from being decoded.

use super::Seat;
use crate::work;
use bareboat_api::{Status, Value};
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;

/// Maximum memory of all decoded large bodies.
pub(super) const DECODED: usize = 40 << 20;
/// Maximum memory of decoded large bodies of requests that wait for other servers.
pub(super) const SET_ASIDE: usize = 16 << 20;
/// Memory is counted in units of this many bytes.
pub(super) const UNIT: usize = 1024;
/// Decoders use at most this many bytes for each byte of a body.
const FACTOR: usize = 16;

/// A share of the memory for decoded bodies. It is given back when this is dropped.
pub(crate) struct Decoded {
    seat: Arc<Seat>,
}

impl Drop for Decoded {
    fn drop(&mut self) {
        self.seat.share().take();
    }
}

/// The memory that a request holds.
pub(super) enum Share {
    /// A part of the memory for work.
    Working { _permit: OwnedSemaphorePermit },
    /// A part of the memory of requests that wait for other servers.
    SetAside { _permit: OwnedSemaphorePermit },
}

/// Takes memory for the decoded body of the current request and for so many bytes of defaults, or waits for it; small
/// bodies need none. Hold it until the request is done.
pub(crate) async fn decoding(body: &[u8], defaults: usize) -> Result<Option<Decoded>, Status> {
    if body.len().saturating_add(defaults) <= work::LARGE {
        return Ok(None);
    }
    let memory = estimate(body).saturating_add(defaults);
    match work::seat() {
        Some(seat) => {
            let permit = seat.decode(memory, body.len()).await?;
            *seat.share() = Some(Share::Working { _permit: permit });
            Ok(Some(Decoded { seat }))
        }
        None => Ok(None),
    }
}

/// Call this before a request waits for another server, with what it sends there: the request then holds memory apart,
/// and other bodies are decoded meanwhile. If that is full, it keeps its memory while there is enough for others; otherwise
/// it is refused.
pub(crate) fn set_aside<'a>(sent: impl IntoIterator<Item = &'a [u8]>) -> Result<(), Status> {
    let Some(seat) = work::seat() else {
        return Ok(());
    };
    if !matches!(*seat.share(), Some(Share::Working { .. })) {
        return Ok(());
    }
    // The object and what is sent.
    let sent = sent.into_iter().map(|sent| (estimate(sent), sent.len()));
    let (object, texts) = sent.fold((0, 0), |(most, sum), (object, text)| {
        (object.max(most), text + sum)
    });
    seat.set_aside(object + texts)
}

/// Returns about how much memory a body takes when it is decoded.
fn estimate(body: &[u8]) -> usize {
    let most = body.len().saturating_mul(FACTOR);
    if body.starts_with(b"k8s\0") {
        return most;
    }
    most.min(body.len() + values(body) * size_of::<Value>())
}

/// Returns about how many values a body in JSON or YAML has, at least as many as it really has.
pub(crate) fn values(body: &[u8]) -> usize {
    // Every value comes after one of these.
    let starts = |byte: &&u8| matches!(byte, b',' | b'[' | b'{' | b':' | b'\n');
    1 + body.iter().filter(starts).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_small_values_weigh_more_than_a_long_string() {
        let arrays = format!("[{}[0]]", "[0],".repeat(1000));
        let string = format!("\"{}\"", "x".repeat(arrays.len()));
        let nodes = 2 * 1000;
        assert!(estimate(arrays.as_bytes()) >= nodes * size_of::<Value>());
        assert!(estimate(string.as_bytes()) < 2 * string.len());
        assert_eq!(estimate(b"k8s\0xxxx"), 8 * FACTOR);
    }
}

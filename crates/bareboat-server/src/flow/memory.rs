//! The memory of decoded bodies. A few bytes of JSON can become many of memory, so large bodies are counted by an
//! estimate of what they become, with a limit for all requests together.

use crate::work;
use bareboat_api::{Status, Value};
use tokio::sync::OwnedSemaphorePermit;

/// Maximum memory of all decoded large bodies.
pub(super) const DECODED: usize = 64 << 20;
/// Memory is counted in units of this many bytes.
pub(super) const UNIT: usize = 1024;
/// Decoders use at most this many bytes for each byte of a body.
const FACTOR: usize = 16;

/// A share of the memory for decoded bodies.
pub(crate) struct Decoded {
    _permit: OwnedSemaphorePermit,
}

impl Decoded {
    pub(super) fn new(permit: OwnedSemaphorePermit) -> Decoded {
        Decoded { _permit: permit }
    }
}

/// Takes memory for the decoded body of the current request, or waits for it; small bodies need none. Hold it until the
/// request is done.
pub(crate) async fn decoding(body: &[u8]) -> Result<Option<Decoded>, Status> {
    if body.len() <= work::LARGE {
        return Ok(None);
    }
    match work::seat() {
        Some(seat) => seat.decode(estimate(body), body.len()).await.map(Some),
        None => Ok(None),
    }
}

/// Returns about how much memory a body takes when it is decoded.
fn estimate(body: &[u8]) -> usize {
    let most = body.len().saturating_mul(FACTOR);
    if body.starts_with(b"k8s\0") {
        return most;
    }
    // Every value of JSON and YAML comes after one of these.
    let starts = |byte: &&u8| matches!(byte, b',' | b'[' | b'{' | b':' | b'\n');
    let values = 1 + body.iter().filter(starts).count();
    most.min(body.len() + values * size_of::<Value>())
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

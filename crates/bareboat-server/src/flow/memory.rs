//! The memory of decoded bodies. A few bytes of JSON can become many of memory, so large bodies are counted by an
//! estimate of what they become, with a limit for all requests together.
//!
//! Requests that wait for another server have a limit of their own: otherwise a server that does not answer would keep
//! all other large bodies from being decoded. While a request waits for a webhook, the objects that it sends there count,
//! even if its own body is small: a patch or a deletion.

use super::Seat;
use crate::work;
use bareboat_api::{Status, Value};
use bytes::Bytes;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

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
#[derive(Default)]
pub(super) struct Share {
    /// A part of the memory for work.
    working: Option<OwnedSemaphorePermit>,
    /// A part of the memory of requests that wait for other servers.
    aside: Option<OwnedSemaphorePermit>,
}

impl Share {
    /// Grows to so many units, which a waiting request needs. Returns false if there is not enough memory.
    ///
    /// The memory for work is given back. If the memory set aside is full, it is kept, or taken, while there is enough of
    /// it for others.
    fn set_aside(&mut self, units: usize, seat: &Seat) -> bool {
        let budgets = seat.budgets();
        let more = units.saturating_sub(held(&self.aside));
        if take(&mut self.aside, &budgets.set_aside, more) {
            self.working = None;
            return true;
        }
        let more = more.saturating_sub(held(&self.working));
        budgets.decoded.available_permits() >= DECODED / UNIT / 2
            && take(&mut self.working, &budgets.decoded, more)
    }
}

fn held(part: &Option<OwnedSemaphorePermit>) -> usize {
    part.as_ref().map_or(0, OwnedSemaphorePermit::num_permits)
}

/// Takes so many more units; returns whether there were enough.
fn take(part: &mut Option<OwnedSemaphorePermit>, budget: &Arc<Semaphore>, units: usize) -> bool {
    let Ok(units) = u32::try_from(units) else {
        return false;
    };
    match (budget.clone().try_acquire_many_owned(units), part) {
        (Ok(more), Some(part)) => part.merge(more),
        (Ok(more), part) => *part = Some(more),
        (Err(_), _) => return false,
    }
    true
}

/// The memory of a request while it waits for another server. A request with a large body keeps it afterwards, because
/// it gave its memory for work back.
#[must_use]
pub(crate) struct Aside {
    _held: Option<Held>,
}

struct Held {
    seat: Arc<Seat>,
    share: Share,
    /// Whether the request keeps the share.
    keep: bool,
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.keep {
            let mut kept = self.seat.share();
            // Parts of a request may wait at the same time; the request keeps the share of one.
            if kept.is_none() {
                *kept = Some(std::mem::take(&mut self.share));
            }
        }
    }
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
            *seat.share() = Some(Share {
                working: Some(permit),
                aside: None,
            });
            Ok(Some(Decoded { seat }))
        }
        None => Ok(None),
    }
}

/// Call this before a request waits for a webhook, with the texts of objects that it sends there, and hold the result
/// until the answer is used: the request then holds memory apart for the texts and the objects, and other bodies are
/// decoded meanwhile. A text that is given several times counts once. The request is refused if there is no memory.
pub(crate) fn set_aside<'a>(sent: impl IntoIterator<Item = &'a Bytes>) -> Result<Aside, Status> {
    let Some(seat) = work::seat() else {
        return Ok(Aside { _held: None });
    };
    let mut texts: Vec<&Bytes> = sent.into_iter().collect();
    texts.sort_unstable_by_key(|text| text.as_ptr());
    texts.dedup_by_key(|text| text.as_ptr());
    let kept = seat.share().take();
    let sum: usize = texts.iter().map(|text| text.len()).sum();
    match kept {
        None if sum <= work::LARGE => Ok(Aside { _held: None }),
        kept => hold(seat, kept, &texts),
    }
}

/// The same for a request that may hold memory for its body. Others need none, whatever they send.
pub(crate) fn set_body_aside(sent: &Bytes) -> Result<Aside, Status> {
    let seat = work::seat();
    let kept = seat.as_ref().and_then(|seat| seat.share().take());
    match (seat, kept) {
        (Some(seat), Some(kept)) => hold(seat, Some(kept), &[sent]),
        _ => Ok(Aside { _held: None }),
    }
}

fn hold(seat: Arc<Seat>, kept: Option<Share>, texts: &[&Bytes]) -> Result<Aside, Status> {
    let memory: usize = texts.iter().map(|text| estimate(text) + text.len()).sum();
    let mut held = Held {
        keep: kept.is_some(),
        share: kept.unwrap_or_default(),
        seat,
    };
    let units = memory.min(SET_ASIDE).div_ceil(UNIT);
    match held.share.set_aside(units, &held.seat) {
        true => Ok(Aside { _held: Some(held) }),
        false => Err(held.seat.without_memory()),
    }
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
    let starts = |byte: &u8| u8::from(matches!(byte, b',' | b'[' | b'{' | b':' | b'\n'));
    // Counted in a byte per piece, so that the compiler handles many bytes at once.
    let pieces = body.chunks(usize::from(u8::MAX));
    let counts = pieces.map(|piece| usize::from(piece.iter().map(starts).sum::<u8>()));
    1 + counts.sum::<usize>()
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

//! Requests that arrive while the server stops.
//!
//! Ordinary requests are answered. Streams would be cut off at once, and so would answers of other servers; such requests are refused
//! before anything is sent, so that their clients ask again. A watch is answered, because clients expect its end at any time. So is a
//! stream of an annex that needs no other server, because the annex ends it.

use super::state::State;
use crate::reply::{Response, plain_text};
use crate::request::ask::Ask;
use bareboat_api::Status;
use http::{HeaderValue, StatusCode, header};
use std::sync::atomic::{AtomicBool, Ordering};

/// What the shutdown means for one request.
#[derive(Debug, Default)]
pub(crate) struct Parting {
    /// Whether the request arrived after the shutdown had begun.
    late: bool,
    /// Whether the request changes nothing.
    reads: bool,
    /// Whether the shutdown kept the request from calling another server.
    refused: AtomicBool,
}

impl Parting {
    pub(crate) fn new(late: bool, reads: bool) -> Parting {
        Parting {
            late,
            reads,
            refused: AtomicBool::new(false),
        }
    }

    pub(super) fn is_late(&self) -> bool {
        self.late
    }

    /// Returns the answer that a function of the program made, or 503 if the shutdown refused one of its calls. Without that call the
    /// answer to a read may be incomplete. A write that succeeds has happened, so its client must not repeat it.
    pub(crate) fn complete<T>(&self, answer: Result<T, Status>) -> Result<T, Status> {
        match self.refused.load(Ordering::Relaxed) {
            true if self.reads || answer.is_err() => Err(stopping()),
            _ => answer,
        }
    }
}

/// Returns the answer to a request that the shutdown would cut off.
pub(crate) fn stopping() -> Status {
    Status::unavailable("the server is stopping; ask again").retry_after(5)
}

/// Returns the answer to a request that comes after the shutdown has stopped waiting for requests.
pub(super) fn closed() -> Response {
    let text = "the server has stopped; ask again\n";
    let mut response = plain_text(StatusCode::SERVICE_UNAVAILABLE, text);
    let headers = response.headers_mut();
    headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
    response
}

impl State {
    /// Returns whether the shutdown has begun.
    pub(crate) fn is_ending(&self) -> bool {
        *self.ending.borrow()
    }

    /// Refuses to send a request, or a part of it, to another server if the shutdown would cut off the answer: of a stream, or of a
    /// request that arrived after the shutdown had begun.
    #[cfg(feature = "outbound")]
    pub(crate) fn may_pass_on(&self, ask: &Ask) -> Result<(), Status> {
        if (ask.parting.late || ask.streams) && self.is_ending() {
            ask.parting.refused.store(true, Ordering::Relaxed);
            return Err(stopping());
        }
        Ok(())
    }
}

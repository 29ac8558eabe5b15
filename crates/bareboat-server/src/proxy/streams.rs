//! Streams of proxied bodies: the request's, which has a limit, and the answer's, which ends with the server.

use super::Held;
use crate::outbound::Load;
use crate::request::body::{BodyError, RequestBody};
use crate::revocation::End;
use crate::server::state::Ending;
use bareboat_api::Status;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

const ARRIVING: u8 = 0;
const WHOLE: u8 = 1;
const TOO_LARGE: u8 = 2;
const BROKEN: u8 = 3;

/// The state of a request body, to explain a missing answer.
#[derive(Clone)]
pub(super) struct Sent {
    fate: Arc<AtomicU8>,
    limit: usize,
}

impl Sent {
    /// Returns a body to send, and its state.
    pub(super) fn new(body: RequestBody, limit: usize) -> Result<(RequestBody, Sent), Status> {
        if body.size_hint().lower() > limit as u64 {
            return Err(Status::too_large(limit));
        }
        let whole = body.is_end_stream();
        let sent = Sent {
            fate: Arc::new(AtomicU8::new(if whole { WHOLE } else { ARRIVING })),
            limit,
        };
        if whole {
            return Ok((RequestBody::default(), sent));
        }
        let passing = Sending {
            inner: body,
            left: limit,
            fate: sent.fate.clone(),
        };
        Ok((RequestBody::Boxed(Box::pin(passing)), sent))
    }

    /// Returns whether the client has not sent the whole body yet.
    pub(super) fn is_arriving(&self) -> bool {
        self.fate.load(Ordering::Relaxed) == ARRIVING
    }

    /// Returns the client's error, if there was one.
    pub(super) fn fault(&self) -> Option<Status> {
        match self.fate.load(Ordering::Relaxed) {
            TOO_LARGE => Some(Status::too_large(self.limit)),
            BROKEN => Some(Status::bad_request("the body of the request ended early")),
            _ => None,
        }
    }
}

struct Sending {
    inner: RequestBody,
    left: usize,
    fate: Arc<AtomicU8>,
}

impl Body for Sending {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let polled = std::task::ready!(Pin::new(&mut self.inner).poll_frame(cx));
        let fate = match &polled {
            None => WHOLE,
            Some(Err(_)) => BROKEN,
            Some(Ok(frame)) => {
                let size = frame.data_ref().map_or(0, Bytes::len);
                match self.left.checked_sub(size) {
                    None => {
                        self.fate.store(TOO_LARGE, Ordering::Relaxed);
                        return Poll::Ready(Some(Err("the body is too large".into())));
                    }
                    Some(left) => self.left = left,
                }
                if self.inner.is_end_stream() {
                    WHOLE
                } else {
                    ARRIVING
                }
            }
        };
        self.fate.store(fate, Ordering::Relaxed);
        Poll::Ready(polled)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// The body of an answer.
///
/// When the server shuts down, or the client loses its permission, an answer of known length is completed, and so is one to a request
/// that is no stream. A watch ends plainly. Any other answer is aborted with an error, so that the client does not take it for complete.
/// So is an answer that is not complete in time.
pub(super) struct Answered {
    inner: Incoming,
    end: End,
    /// Whether it ended before the other server ended it.
    is_cut: bool,
    ending: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    until: Option<Pin<Box<tokio::time::Sleep>>>,
    _held: (Held, Load),
}

impl Answered {
    pub(super) fn new(
        inner: Incoming,
        ending: Option<Ending>,
        end: End,
        until: Option<Instant>,
        held: (Held, Load),
    ) -> Answered {
        let endless = inner.size_hint().exact().is_none();
        let until = until.filter(|_| !inner.is_end_stream());
        Answered {
            inner,
            end,
            is_cut: false,
            ending: ending
                .filter(|_| endless)
                .map(|ending| Box::pin(ending.begun()) as _),
            until: until.map(|until| Box::pin(tokio::time::sleep_until(until.into()))),
            _held: held,
        }
    }
}

impl Body for Answered {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Some(ending) = &mut self.ending
            && ending.as_mut().poll(cx).is_ready()
        {
            self.ending = None;
            self.is_cut = true;
            return Poll::Ready(match self.end {
                End::Plain => None,
                End::Broken => Some(Err("the answer was cut off".into())),
            });
        }
        if self.is_cut {
            return Poll::Ready(None);
        }
        if let Some(until) = &mut self.until
            && until.as_mut().poll(cx).is_ready()
        {
            self.until = None;
            return Poll::Ready(Some(Err("the answer was not complete in time".into())));
        }
        Pin::new(&mut self.inner)
            .poll_frame(cx)
            .map_err(BodyError::from)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests;

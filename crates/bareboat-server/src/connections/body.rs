//! The body of an answer: counts its bytes until the socket has taken them.

use super::Line;
use super::line::Busy;
use crate::reply::Body;
use crate::request::body::BodyError;
use crate::work;
use bytes::{Buf, Bytes};
use http_body::{Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// A body whose bytes count as unread on its connection.
pub(crate) struct Metered {
    inner: Body,
    busy: Busy,
    /// How many of the bytes that the body held at the start are not sent yet.
    held: usize,
    is_large: bool,
}

impl Metered {
    /// Counts the bytes of `inner`; its request counts as running until the body ends.
    pub(crate) fn new(inner: Body, busy: Busy) -> Metered {
        let held = inner.held();
        if held > 0 {
            busy.line().hold(held);
        }
        let is_large = held > work::LARGE;
        if is_large {
            busy.line().begin_large();
        }
        Metered {
            inner,
            busy,
            held,
            is_large,
        }
    }

    /// Returns whether it is known from the start that there are many bytes.
    pub(crate) fn is_large(&self) -> bool {
        self.is_large
    }
}

impl http_body::Body for Metered {
    type Data = Unread;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Unread>, BodyError>>> {
        let this = &mut *self;
        let line = this.busy.line();
        // A body in one piece was counted when it was made.
        if this.inner.as_full().is_none() {
            ready!(line.poll_make(cx));
        }
        let frame = ready!(Pin::new(&mut this.inner).poll_frame(cx));
        Poll::Ready(frame.map(|frame| {
            frame.map(|frame| {
                frame.map_data(|bytes| {
                    let was_held = this.held.min(bytes.len());
                    this.held -= was_held;
                    Unread::new(bytes, was_held, line.clone())
                })
            })
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Drop for Metered {
    fn drop(&mut self) {
        let line = self.busy.line();
        if self.is_large {
            line.end_large();
        }
        if self.held > 0 {
            line.offer(self.held);
            line.release(self.held);
        }
    }
}

/// Bytes that the socket has not taken yet.
pub(crate) struct Unread {
    bytes: Bytes,
    charged: usize,
    line: Arc<Line>,
}

impl Unread {
    /// Counts bytes, except for those that their body held.
    fn new(bytes: Bytes, was_held: usize, line: Arc<Line>) -> Unread {
        if was_held > 0 {
            line.offer(was_held);
        }
        if was_held < bytes.len() {
            line.charge(bytes.len() - was_held);
        }
        Unread {
            charged: bytes.len(),
            bytes,
            line,
        }
    }
}

impl Buf for Unread {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        let taken = count.min(self.charged);
        self.charged -= taken;
        self.line.release(taken);
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        if self.charged > 0 {
            self.line.release(self.charged);
        }
    }
}

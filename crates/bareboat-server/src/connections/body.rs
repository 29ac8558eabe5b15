//! The body of an answer on its way into a socket: its bytes are counted until the socket has taken them.

use super::Line;
use super::line::Busy;
use crate::reply::Body;
use crate::request::body::BodyError;
use bytes::{Buf, Bytes};
use http_body::{Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// A body whose bytes are counted as unread by its connection.
pub(crate) struct Metered {
    inner: Body,
    busy: Busy,
    /// What the body holds before anything is asked of it, less what was made of it.
    held: usize,
}

impl Metered {
    /// Counts what `inner` makes, and has its request be under way until it ends.
    pub(crate) fn new(inner: Body, busy: Busy) -> Metered {
        let held = inner.held();
        if held > 0 {
            busy.line().hold(held);
        }
        Metered { inner, busy, held }
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
        // What is whole was counted when it came.
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
        if self.held > 0 {
            let line = self.busy.line();
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

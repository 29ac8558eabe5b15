//! Where a connection is polled, and how many bytes it moves until it is another connection's turn.

use super::Line;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

/// Bytes of answers that the socket takes in one poll on a worker. For more, the connection moves to the threads for large
/// work. Bytes of requests do not move it: if bodies were read faster than they are decoded, they would take more memory.
const ON_WORKER: usize = 64 << 10;
/// Bytes of requests that the socket reads in one poll. Then it is another connection's turn: decryption of the large bodies
/// of one client would otherwise delay the small requests of others.
const READ: usize = 64 << 10;
/// Bytes that the socket takes in one poll on such a thread. Then it is another connection's turn.
const ON_THREAD: usize = 256 << 10;

impl Line {
    /// Returns whether the next poll is likely to move many bytes: a large answer is being sent, or the last poll ended
    /// because it had moved all bytes it may.
    pub(crate) fn moves_much(&self) -> bool {
        self.large.load(Ordering::Relaxed) > 0 || self.left.load(Ordering::Relaxed) == 0
    }

    /// Starts a poll on a worker of the runtime.
    pub(crate) fn begin_poll_on_worker(&self) {
        self.on_worker.store(true, Ordering::Relaxed);
        self.may_move(ON_WORKER);
    }

    /// Starts a poll on a thread for large work.
    pub(crate) fn begin_poll_on_thread(&self) {
        self.on_worker.store(false, Ordering::Relaxed);
        self.may_move(ON_THREAD);
    }

    fn may_move(&self, bytes: usize) {
        if !self.is_upgraded() {
            self.left.store(bytes, Ordering::Relaxed);
            self.readable.store(READ, Ordering::Relaxed);
        }
    }

    /// Ready while the socket may read bytes in this poll; otherwise the connection is polled again.
    pub(crate) fn poll_may_read(&self, cx: &Context<'_>) -> Poll<()> {
        if self.is_upgraded() || self.readable.load(Ordering::Relaxed) > 0 {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Counts bytes that the socket read.
    pub(crate) fn has_read(&self, bytes: usize) {
        let left = self.readable.load(Ordering::Relaxed);
        if left < usize::MAX {
            (self.readable).store(left.saturating_sub(bytes), Ordering::Relaxed);
        }
    }

    /// Ready while the socket may move bytes in this poll; otherwise the connection is polled again.
    pub(crate) fn poll_move(&self, cx: &Context<'_>) -> Poll<()> {
        if self.left.load(Ordering::Relaxed) > 0 {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Counts bytes that the socket moved.
    pub(crate) fn moved(&self, bytes: usize) {
        let left = self.left.load(Ordering::Relaxed);
        if left < usize::MAX {
            (self.left).store(left.saturating_sub(bytes), Ordering::Relaxed);
        }
    }

    /// Counts a large answer until [`Line::end_large`].
    pub(crate) fn begin_large(&self) {
        self.large.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn end_large(&self) {
        self.large.fetch_sub(1, Ordering::Relaxed);
    }

    /// Waits until the connection is polled on a thread for large work. A large answer awaits it before its head is
    /// sent. Requests over HTTP/2 are tasks of their own and do not wait.
    pub(crate) async fn leave_worker(&self) {
        let mut waited = self.http2.load(Ordering::Relaxed);
        std::future::poll_fn(|cx| {
            if waited || !self.on_worker.load(Ordering::Relaxed) {
                return Poll::Ready(());
            }
            waited = true;
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }
}

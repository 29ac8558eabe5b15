//! One connection: its state, its running requests, and the unread bytes of its answers.
//!
//! Bytes of answers are counted from the moment a body makes them until the socket takes them. Every connection has a
//! small share; bytes beyond it also count against a limit of the whole server. While a connection is over its limit,
//! its bodies make no more bytes and its next requests wait.

mod turns;

use super::{Connections, READING};
use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// Unread bytes that every connection may have, whatever other connections do.
pub(super) const SHARE: usize = 64 << 10;
/// Maximum unread bytes of an HTTP/1 connection, which has one answer at a time.
const HTTP1: usize = 256 << 10;
/// Maximum unread bytes of an HTTP/2 connection.
const HTTP2: usize = 8 << 20;
/// Bytes of a request head that every unauthenticated connection may send.
const HEAD_SHARE: usize = 16 << 10;
/// Bytes of request heads beyond that, for all unauthenticated connections together.
const HEADS: usize = 16 << 20;

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing was received.
    Silent,
    /// Some bytes were received.
    Speaking,
    /// A request with credentials was received.
    Known,
}

/// How to close a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Close {
    /// After the running requests are done.
    Soon,
    /// At once.
    Now,
}

const OPEN: u8 = 0;
const SOON: u8 = 1;
const NOW: u8 = 2;

/// An open connection: its client, its state, and its unread bytes.
pub(crate) struct Line {
    pub(super) id: u64,
    pub(super) address: IpAddr,
    accepted: Instant,
    all: Arc<Connections>,
    stage: AtomicU8,
    http2: AtomicBool,
    upgraded: AtomicBool,
    is_tunnel: AtomicBool,
    under_way: AtomicU32,
    /// When the last request was done, or when the connection was opened.
    quiet_since: AtomicU64,
    /// Since when the socket accepts no bytes; 0 while it does.
    blocked_since: AtomicU64,
    /// Bytes that were made and not taken by the socket, and bytes that bodies hold.
    unread: AtomicUsize,
    /// The part of them that bodies hold, which was not offered to the socket yet.
    held: AtomicUsize,
    /// When the socket last took some of the unread bytes.
    progress: AtomicU64,
    waiting: AtomicBool,
    waiters: Mutex<Vec<Waker>>,
    head: AtomicUsize,
    /// How many large answers are being sent.
    large: AtomicU32,
    /// How many bytes the socket may still move in this poll.
    left: AtomicUsize,
    /// How many bytes the socket may still read in this poll.
    readable: AtomicUsize,
    on_worker: AtomicBool,
    closing: AtomicU8,
    linger: AtomicBool,
    task: AtomicWaker,
    writer: AtomicWaker,
}

impl Line {
    pub(super) fn new(id: u64, address: IpAddr, all: Arc<Connections>) -> Line {
        let now = all.now();
        Line {
            id,
            address,
            accepted: Instant::now(),
            all,
            stage: AtomicU8::new(Stage::Silent as u8),
            http2: AtomicBool::new(false),
            upgraded: AtomicBool::new(false),
            is_tunnel: AtomicBool::new(false),
            under_way: AtomicU32::new(0),
            quiet_since: AtomicU64::new(now),
            blocked_since: AtomicU64::new(0),
            unread: AtomicUsize::new(0),
            held: AtomicUsize::new(0),
            progress: AtomicU64::new(now),
            waiting: AtomicBool::new(false),
            waiters: Mutex::default(),
            head: AtomicUsize::new(0),
            large: AtomicU32::new(0),
            left: AtomicUsize::new(usize::MAX),
            readable: AtomicUsize::new(usize::MAX),
            on_worker: AtomicBool::new(false),
            closing: AtomicU8::new(OPEN),
            linger: AtomicBool::new(false),
            task: AtomicWaker::new(),
            writer: AtomicWaker::new(),
        }
    }

    pub(super) fn stage(&self) -> Stage {
        match self.stage.load(Ordering::Relaxed) {
            0 => Stage::Silent,
            1 => Stage::Speaking,
            _ => Stage::Known,
        }
    }

    pub(super) fn age(&self) -> Duration {
        self.accepted.elapsed()
    }

    /// Returns whether the connection has sent an authenticated request.
    pub(crate) fn is_known(&self) -> bool {
        self.stage() == Stage::Known
    }

    /// Marks the connection as authenticated; false if there are too many authenticated connections.
    pub(crate) fn know(&self) -> bool {
        if self.is_known() {
            return true;
        }
        if !self.all.know(self) {
            return false;
        }
        self.give_back_head();
        self.stage.store(Stage::Known as u8, Ordering::Relaxed);
        true
    }

    /// Marks the connection as HTTP/2.
    pub(crate) fn set_http2(&self) {
        self.http2.store(true, Ordering::Relaxed);
    }

    /// Marks the connection as upgraded: it is not closed when it is idle. A tunnel is not closed either when its client
    /// stops reading.
    pub(crate) fn set_upgraded(&self, is_tunnel: bool) {
        // From now on another task polls the socket.
        self.left.store(usize::MAX, Ordering::Relaxed);
        self.upgraded.store(true, Ordering::Relaxed);
        self.is_tunnel.store(is_tunnel, Ordering::Relaxed);
    }

    /// Returns whether the connection was upgraded and no longer is HTTP.
    pub(crate) fn is_upgraded(&self) -> bool {
        self.upgraded.load(Ordering::Relaxed)
    }

    /// Starts a request, which runs until the returned value is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> Busy {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        if !self.is_known() {
            self.give_back_head();
        }
        Busy(self.clone())
    }

    // Closing.

    /// Requests that it is closed.
    pub(crate) fn close(&self, how: Close) {
        let how = match how {
            Close::Soon => SOON,
            Close::Now => NOW,
        };
        self.closing.fetch_max(how, Ordering::Relaxed);
        self.task.wake();
        self.writer.wake();
    }

    /// Returns whether it is to be closed at once.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.closing.load(Ordering::Relaxed) == NOW
    }

    /// Ready with the way to close it, once that is requested.
    pub(crate) fn poll_close(&self, cx: &Context<'_>) -> Poll<Close> {
        self.task.register(cx.waker());
        match self.closing.load(Ordering::Relaxed) {
            OPEN => Poll::Pending,
            SOON => Poll::Ready(Close::Soon),
            _ => Poll::Ready(Close::Now),
        }
    }

    /// Waits until it is to be closed at once.
    pub(crate) async fn cut_off(&self) {
        std::future::poll_fn(|cx| match self.poll_close(cx) {
            Poll::Ready(Close::Now) => Poll::Ready(()),
            _ => Poll::Pending,
        })
        .await;
    }

    /// Keeps the socket open for a moment, so that a client that is still sending can read its answer.
    pub(crate) fn set_linger(&self) {
        self.linger.store(true, Ordering::Relaxed);
    }

    /// Returns whether the socket stays open for that moment.
    pub(crate) fn is_to_linger(&self) -> bool {
        self.linger.load(Ordering::Relaxed)
    }

    /// Records that the socket was closed.
    pub(crate) fn leave(&self) {
        self.give_back_head();
        self.all.leave(self);
    }

    // Reading and writing.

    /// Records that the first bytes were received.
    pub(crate) fn speaks(&self) {
        let (silent, speaking) = (Stage::Silent as u8, Stage::Speaking as u8);
        let exchange =
            (self.stage).compare_exchange(silent, speaking, Ordering::Relaxed, Ordering::Relaxed);
        debug_assert!(exchange.is_ok() || self.stage() != Stage::Silent);
    }

    /// Counts bytes received before authentication; false if there are too many.
    pub(crate) fn may_read(&self, bytes: usize) -> bool {
        let before = self.head.fetch_add(bytes, Ordering::Relaxed);
        let more = (before + bytes).max(HEAD_SHARE) - before.max(HEAD_SHARE);
        more == 0 || self.all.heads.fetch_add(more, Ordering::Relaxed) + more <= HEADS
    }

    fn give_back_head(&self) {
        let head = self.head.swap(0, Ordering::Relaxed);
        if head > HEAD_SHARE {
            (self.all.heads).fetch_sub(head - HEAD_SHARE, Ordering::Relaxed);
        }
    }

    /// Records that the socket accepts no bytes at the moment.
    pub(crate) fn blocked(&self, cx: &Context<'_>) {
        self.writer.register(cx.waker());
        if self.blocked_since.load(Ordering::Relaxed) == 0 {
            self.blocked_since.store(self.all.now(), Ordering::Relaxed);
        }
    }

    /// Records that the socket accepts bytes again.
    pub(crate) fn unblocked(&self) {
        self.blocked_since.store(0, Ordering::Relaxed);
    }

    // Unread bytes.

    /// Returns whether a body may make more bytes. Bytes that bodies hold do not count: they have to be offered to the
    /// socket first.
    pub(super) fn may_make(&self) -> bool {
        let held = self.held.load(Ordering::Relaxed);
        self.allows(self.unread.load(Ordering::SeqCst).saturating_sub(held))
    }

    /// Returns whether a request may be answered.
    pub(super) fn may_answer(&self) -> bool {
        self.allows(self.unread.load(Ordering::SeqCst))
    }

    fn allows(&self, unread: usize) -> bool {
        let most = match self.http2.load(Ordering::Relaxed) {
            true => HTTP2,
            false => HTTP1,
        };
        unread < SHARE
            || (unread < most && self.all.unread.load(Ordering::Relaxed) < self.all.limits.unread)
    }

    /// Ready when a body may make more bytes.
    pub(super) fn poll_make(&self, cx: &Context<'_>) -> Poll<()> {
        self.poll_until(cx, Line::may_make)
    }

    /// Waits until a request may be answered.
    pub(crate) async fn room(&self) {
        std::future::poll_fn(|cx| self.poll_until(cx, Line::may_answer)).await;
    }

    fn poll_until(&self, cx: &Context<'_>, holds: impl Fn(&Line) -> bool) -> Poll<()> {
        if holds(self) {
            return Poll::Ready(());
        }
        let mut waiters = self.waiters.lock();
        if !waiters.iter().any(|waiter| waiter.will_wake(cx.waker())) {
            waiters.push(cx.waker().clone());
        }
        drop(waiters);
        self.waiting.store(true, Ordering::SeqCst);
        // Bytes may have been taken in between.
        match holds(self) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    /// Counts bytes that a body holds from the start.
    pub(super) fn hold(&self, bytes: usize) {
        self.held.fetch_add(bytes, Ordering::Relaxed);
        self.charge(bytes);
    }

    /// Records that held bytes are offered to the socket, and count as unread from now on.
    pub(super) fn offer(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Counts bytes that were made.
    pub(super) fn charge(&self, bytes: usize) {
        let before = self.unread.fetch_add(bytes, Ordering::SeqCst);
        let after = before + bytes;
        let more = after.max(SHARE) - before.max(SHARE);
        if more > 0 {
            self.all.unread.fetch_add(more, Ordering::Relaxed);
        }
        let counts = self.counts_from();
        if before == 0 || (before < counts && after >= counts) {
            self.progress.store(self.all.now(), Ordering::Relaxed);
        }
    }

    /// Subtracts bytes that were taken or dropped.
    pub(super) fn release(&self, bytes: usize) {
        let before = self.unread.fetch_sub(bytes, Ordering::SeqCst);
        let less = before.max(SHARE) - (before - bytes).max(SHARE);
        if less > 0 {
            self.all.unread.fetch_sub(less, Ordering::Relaxed);
        }
        self.progress.store(self.all.now(), Ordering::Relaxed);
        if self.waiting.load(Ordering::SeqCst) && self.may_make() {
            self.waiting.store(false, Ordering::SeqCst);
            let waiters = std::mem::take(&mut *self.waiters.lock());
            waiters.into_iter().for_each(Waker::wake);
        }
    }

    /// Returns whether the client takes the bytes of an answer. A tunnel has none.
    pub(super) fn is_read(&self, now: u64) -> bool {
        let since = now.saturating_sub(self.progress.load(Ordering::Relaxed));
        self.unread.load(Ordering::Relaxed) > 0 && Duration::from_millis(since) < READING
    }

    /// Returns from how many unread bytes on the client must read some from time to time. Authenticated clients may
    /// leave a few unread: one of many streams may wait for its reader.
    fn counts_from(&self) -> usize {
        match self.is_known() {
            true => SHARE,
            false => 1,
        }
    }

    /// Returns how this connection must be closed, if it must.
    pub(super) fn verdict(&self, now: u64) -> Option<Close> {
        let limits = &self.all.limits;
        let past =
            |since: u64, limit: Duration| Duration::from_millis(now.saturating_sub(since)) >= limit;
        if self.is_tunnel.load(Ordering::Relaxed) {
            return None;
        }
        let blocked = self.blocked_since.load(Ordering::Relaxed);
        if blocked > 0 && past(blocked, limits.stalled) {
            return Some(Close::Now);
        }
        if self.unread.load(Ordering::Relaxed) >= self.counts_from()
            && past(self.progress.load(Ordering::Relaxed), limits.stalled)
        {
            return Some(Close::Now);
        }
        if self.under_way.load(Ordering::Relaxed) > 0 || self.upgraded.load(Ordering::Relaxed) {
            return None;
        }
        let quiet = self.quiet_since.load(Ordering::Relaxed);
        if !self.is_known() {
            return past(quiet, limits.silent).then_some(Close::Now);
        }
        // hyper closes idle HTTP/1 connections itself.
        let idle = self.http2.load(Ordering::Relaxed) && past(quiet, limits.idle);
        idle.then_some(Close::Soon)
    }
}

/// A running request, from its head to the last byte of its answer.
pub(crate) struct Busy(Arc<Line>);

impl Busy {
    pub(super) fn line(&self) -> &Arc<Line> {
        &self.0
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let line = &self.0;
        // Set before the request is subtracted, so that an old time is never used.
        line.quiet_since.store(line.all.now(), Ordering::Relaxed);
        line.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

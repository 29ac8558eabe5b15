//! One connection: who it belongs to, what it has under way, and how much of its answers is unread.
//!
//! Bytes of answers are counted from the moment a body makes them until the socket takes them. Every connection has a small
//! share of its own; what is beyond it is counted for the whole server, too. While a connection has used up what it may,
//! its bodies make nothing more and its next requests wait.

use super::Connections;
use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// What every connection may have unread, whatever others do.
pub(super) const SHARE: usize = 64 << 10;
/// What an HTTP/1 connection may have unread while the server has room: it has one answer at a time.
const HTTP1: usize = 256 << 10;
/// What an HTTP/2 connection may have unread while the server has room.
const HTTP2: usize = 8 << 20;
/// What an unauthenticated connection may send for a head without asking.
const HEAD_SHARE: usize = 16 << 10;
/// What unauthenticated connections may send for heads beyond that, all together.
const HEADS: usize = 16 << 20;

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing was read from it.
    Silent,
    /// It has said something.
    Speaking,
    /// It brought a request with credentials.
    Known,
}

/// How a connection is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Close {
    /// When what is under way is done.
    Soon,
    /// At once.
    Now,
}

const OPEN: u8 = 0;
const SOON: u8 = 1;
const NOW: u8 = 2;

/// One connection.
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
    /// When the last request was done, or when the connection was made.
    quiet_since: AtomicU64,
    /// Since when the socket takes nothing; 0 while it does.
    blocked_since: AtomicU64,
    /// Bytes that were made and not taken, and what bodies hold.
    unread: AtomicUsize,
    /// Of them, what bodies hold: it has not been offered to the socket yet.
    held: AtomicUsize,
    /// When some of what is unread was last taken.
    progress: AtomicU64,
    waiting: AtomicBool,
    waiters: Mutex<Vec<Waker>>,
    head: AtomicUsize,
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

    /// Whether it brought a request with credentials.
    pub(crate) fn is_known(&self) -> bool {
        self.stage() == Stage::Known
    }

    /// A request with credentials came; no if there are too many connections with such requests.
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

    /// It speaks HTTP/2.
    pub(crate) fn set_http2(&self) {
        self.http2.store(true, Ordering::Relaxed);
    }

    /// It is no longer HTTP. A tunnel lasts as long as both sides like, also while its client pauses: it holds little.
    pub(crate) fn set_upgraded(&self, is_tunnel: bool) {
        self.upgraded.store(true, Ordering::Relaxed);
        self.is_tunnel.store(is_tunnel, Ordering::Relaxed);
    }

    /// A request begins; it is under way while the value is kept.
    pub(crate) fn begin(self: &Arc<Self>) -> Busy {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        if !self.is_known() {
            self.give_back_head();
        }
        Busy(self.clone())
    }

    // How it ends.

    /// Has it end.
    pub(crate) fn close(&self, how: Close) {
        let how = match how {
            Close::Soon => SOON,
            Close::Now => NOW,
        };
        self.closing.fetch_max(how, Ordering::Relaxed);
        self.task.wake();
        self.writer.wake();
    }

    /// Whether it is to end at once.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.closing.load(Ordering::Relaxed) == NOW
    }

    /// How it is to end, as soon as it is to.
    pub(crate) fn poll_close(&self, cx: &Context<'_>) -> Poll<Close> {
        self.task.register(cx.waker());
        match self.closing.load(Ordering::Relaxed) {
            OPEN => Poll::Pending,
            SOON => Poll::Ready(Close::Soon),
            _ => Poll::Ready(Close::Now),
        }
    }

    /// Waits until it is to end at once.
    pub(crate) async fn cut_off(&self) {
        std::future::poll_fn(|cx| match self.poll_close(cx) {
            Poll::Ready(Close::Now) => Poll::Ready(()),
            _ => Poll::Pending,
        })
        .await;
    }

    /// The client gets a moment to read its answer while it is still sending.
    pub(crate) fn set_linger(&self) {
        self.linger.store(true, Ordering::Relaxed);
    }

    /// Whether the client gets such a moment.
    pub(crate) fn is_to_linger(&self) -> bool {
        self.linger.load(Ordering::Relaxed)
    }

    /// The socket was closed.
    pub(crate) fn leave(&self) {
        self.give_back_head();
        self.all.leave(self);
    }

    // What the socket does.

    /// The first bytes came.
    pub(crate) fn speaks(&self) {
        let (silent, speaking) = (Stage::Silent as u8, Stage::Speaking as u8);
        let exchange =
            (self.stage).compare_exchange(silent, speaking, Ordering::Relaxed, Ordering::Relaxed);
        debug_assert!(exchange.is_ok() || self.stage() != Stage::Silent);
    }

    /// Bytes came before anybody knew whose they are; no if there are too many of them.
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

    /// The socket takes nothing at the moment.
    pub(crate) fn blocked(&self, cx: &Context<'_>) {
        self.writer.register(cx.waker());
        if self.blocked_since.load(Ordering::Relaxed) == 0 {
            self.blocked_since.store(self.all.now(), Ordering::Relaxed);
        }
    }

    /// The socket takes something again.
    pub(crate) fn unblocked(&self) {
        self.blocked_since.store(0, Ordering::Relaxed);
    }

    // What is unread.

    /// Whether a body may make more. What bodies hold does not count: the socket has to be offered it first.
    pub(super) fn may_make(&self) -> bool {
        let held = self.held.load(Ordering::Relaxed);
        self.allows(self.unread.load(Ordering::SeqCst).saturating_sub(held))
    }

    /// Whether a request may be answered.
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

    /// Ready when a body may make more.
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
        // Something may have been taken in between.
        match holds(self) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    /// A body holds so many bytes from its beginning.
    pub(super) fn hold(&self, bytes: usize) {
        self.held.fetch_add(bytes, Ordering::Relaxed);
        self.charge(bytes);
    }

    /// What a body held is offered to the socket, and counts as unread from now on.
    pub(super) fn offer(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Bytes were made.
    pub(super) fn charge(&self, bytes: usize) {
        let before = self.unread.fetch_add(bytes, Ordering::SeqCst);
        let after = before + bytes;
        let more = after.max(SHARE) - before.max(SHARE);
        if more > 0 {
            self.all.unread.fetch_add(more, Ordering::Relaxed);
        }
        let counts = self.counts_from();
        if before < counts && after >= counts {
            self.progress.store(self.all.now(), Ordering::Relaxed);
        }
    }

    /// Bytes were taken, or are no longer wanted.
    pub(super) fn release(&self, bytes: usize) {
        let before = self.unread.fetch_sub(bytes, Ordering::SeqCst);
        let less = before.max(SHARE) - (before - bytes).max(SHARE);
        if less > 0 {
            self.all.unread.fetch_sub(less, Ordering::Relaxed);
        }
        if before >= self.counts_from() {
            self.progress.store(self.all.now(), Ordering::Relaxed);
        }
        if self.waiting.load(Ordering::SeqCst) && self.may_make() {
            self.waiting.store(false, Ordering::SeqCst);
            let waiters = std::mem::take(&mut *self.waiters.lock());
            waiters.into_iter().for_each(Waker::wake);
        }
    }

    /// From how many unread bytes on a client has to take some from time to time. Little is tolerated from clients that
    /// are known: one of many streams may wait for a reader.
    fn counts_from(&self) -> usize {
        match self.is_known() {
            true => SHARE,
            false => 1,
        }
    }

    /// How this connection has to end, if it has to.
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
        // hyper ends kept HTTP/1 connections by itself.
        let idle = self.http2.load(Ordering::Relaxed) && past(quiet, limits.idle);
        idle.then_some(Close::Soon)
    }
}

/// A request that is under way, from its head to the last byte of its answer.
pub(crate) struct Busy(Arc<Line>);

impl Busy {
    pub(super) fn line(&self) -> &Arc<Line> {
        &self.0
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let line = &self.0;
        // Before it is counted out: an old time must not be taken for the present one.
        line.quiet_since.store(line.all.now(), Ordering::Relaxed);
        line.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

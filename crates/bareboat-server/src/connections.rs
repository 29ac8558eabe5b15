//! Open connections: their limits, their state, and which of them must be closed.
//!
//! A connection is *unauthenticated* until it has sent an authenticated request. Unauthenticated connections have
//! limits of their own, in total and per address, and the oldest of them are closed for new ones: however many silent
//! sockets a client opens, health checks and clients with credentials can connect.

mod body;
mod line;
mod warden;

pub(crate) use body::Metered;
pub(crate) use line::{Close, Line};

use line::Stage;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// File descriptors reserved for the store, for calls to other servers and for connections that are being closed.
const RESERVED_FILES: usize = 128;
/// A connection that has sent nothing for this long may be closed for a new one. Clients send their first bytes at once. New connections
/// wait in the queue of the system for those before them, so this must be short.
const SILENCE: Duration = Duration::from_millis(100);
/// A connection that has sent data, but no credentials for this long, may be closed for a new one.
const PATIENCE: Duration = Duration::from_secs(3);
/// A client reads its answer if it has taken bytes within this time.
const READING: Duration = Duration::from_secs(1);
/// How often to check again whether one of them may be closed.
const RETRY: Duration = Duration::from_millis(50);

/// Limits of connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionLimits {
    /// Maximum number of open connections; by default limited by the process's open files.
    pub(crate) total: Option<usize>,
    /// Maximum number of unauthenticated connections; by default a quarter of all, at most 1,024.
    pub(crate) unauthenticated: Option<usize>,
    /// Maximum number of unauthenticated connections per address; twice as many while all of them are busy.
    pub(crate) per_address: usize,
    /// A client that reads nothing of its answers for this long is disconnected.
    pub(crate) stalled: Duration,
    /// An unauthenticated connection without a request is closed after this long.
    pub(crate) silent: Duration,
    /// An HTTP/2 connection without a request is closed after this long, as a kept-alive HTTP/1 connection is.
    pub(crate) idle: Duration,
    /// How many bytes of answers may be unread in total, beside the small share of each connection.
    pub(crate) unread: usize,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        ConnectionLimits {
            total: None,
            unauthenticated: None,
            per_address: 256,
            stalled: Duration::from_secs(60),
            silent: Duration::from_secs(30),
            idle: Duration::from_secs(90),
            unread: 64 << 20,
        }
    }
}

/// Marks an answer after which the connection carries a stream of this server instead of HTTP, and is not a tunnel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Streaming;

/// All connections of a server.
pub(crate) struct Connections {
    limits: ConnectionLimits,
    /// Maximum number of authenticated connections.
    known: usize,
    /// Maximum number of unauthenticated connections.
    unknown: usize,
    /// The time of the start, see [`milliseconds`].
    begun: u64,
    table: Mutex<Table>,
    /// Notified when an unauthenticated connection ended or was authenticated.
    freed: Notify,
    /// Notified when a connection was added.
    arrived: Notify,
    watched: AtomicBool,
    /// Unread bytes beyond the share that every connection has.
    unread: AtomicUsize,
    /// Bytes of unfinished request heads from unauthenticated connections.
    heads: AtomicUsize,
}

#[derive(Default)]
struct Table {
    next: u64,
    /// Unauthenticated connections, the oldest first.
    unknown: BTreeMap<u64, Arc<Line>>,
    per_address: HashMap<IpAddr, usize>,
    known: HashMap<u64, Arc<Line>>,
}

impl Connections {
    /// Adapts the limits to the number of files the process may open.
    pub(crate) fn new(limits: ConnectionLimits) -> Connections {
        let possible = open_files().saturating_sub(RESERVED_FILES).max(16);
        let wanted = limits.total.unwrap_or(possible);
        if wanted > possible {
            tracing::warn!(
                wanted,
                possible,
                "the open file limit is too low for this many connections"
            );
        }
        let total = wanted.min(possible).max(2);
        let unknown = limits.unauthenticated.unwrap_or((total / 4).min(1024));
        let unknown = unknown.clamp(1, total - 1);
        Connections {
            limits,
            known: total - unknown,
            unknown,
            begun: milliseconds(),
            table: Mutex::default(),
            freed: Notify::new(),
            arrived: Notify::new(),
            watched: AtomicBool::new(false),
            unread: AtomicUsize::new(0),
            heads: AtomicUsize::new(0),
        }
    }

    /// Reserves a place for a new connection. Waits while all places are taken by clients that are about to
    /// authenticate. Returns `None` if too many clients of this address are in the middle of a request.
    pub(crate) async fn admit(self: &Arc<Self>, address: IpAddr) -> Option<Arc<Line>> {
        let address = address.to_canonical();
        loop {
            {
                let mut table = self.table.lock();
                let siblings = table.per_address.get(&address).copied().unwrap_or(0);
                if siblings >= self.limits.per_address {
                    let same = |line: &Line| line.address == address;
                    match table.oldest(same) {
                        Some(victim) => table.end(&victim),
                        // Many clients behind one address may be in the middle of their handshakes.
                        None if siblings < 2 * self.limits.per_address => {}
                        // However quickly the others come, one that speaks at once finds a place.
                        None => {
                            let victim = table.oldest_silent(same)?;
                            table.end(&victim);
                        }
                    }
                }
                if table.unknown.len() >= self.unknown
                    && let Some(victim) = table.oldest(|_| true)
                {
                    table.end(&victim);
                }
                if table.unknown.len() < self.unknown {
                    return Some(self.enter(&mut table, address));
                }
            }
            let _ = tokio::time::timeout(RETRY, self.freed.notified()).await;
        }
    }

    fn enter(self: &Arc<Self>, table: &mut Table, address: IpAddr) -> Arc<Line> {
        let id = table.next;
        table.next += 1;
        let line = Arc::new(Line::new(id, address, self.clone()));
        table.unknown.insert(id, line.clone());
        *table.per_address.entry(address).or_default() += 1;
        self.arrived.notify_one();
        line
    }

    /// Counts a connection as authenticated; false if there are too many.
    fn know(&self, line: &Line) -> bool {
        let mut table = self.table.lock();
        if table.known.len() >= self.known {
            return false;
        }
        if let Some(line) = table.forget_unknown(line) {
            table.known.insert(line.id, line);
        }
        drop(table);
        self.freed.notify_one();
        true
    }

    /// Removes a closed connection.
    fn leave(&self, line: &Line) {
        let mut table = self.table.lock();
        let gone = table.forget_unknown(line);
        if gone.is_none() {
            table.known.remove(&line.id);
        }
        drop(table);
        if gone.is_some() {
            self.freed.notify_one();
        }
    }

    /// Returns milliseconds since the start, never 0.
    fn now(&self) -> u64 {
        milliseconds().saturating_sub(self.begun) + 1
    }

    /// Returns whether a client still reads its answer.
    pub(crate) fn are_read(&self) -> bool {
        let (now, table) = (self.now(), self.table.lock());
        let mut lines = table.known.values().chain(table.unknown.values());
        lines.any(|line| line.is_read(now))
    }

    /// Returns how many connections are open, how many of them are unauthenticated, and how many bytes are unread
    /// beyond their shares.
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        let table = self.table.lock();
        let unknown = table.unknown.len();
        let unread = self.unread.load(Ordering::Relaxed);
        (table.known.len() + unknown, unknown, unread)
    }
}

impl Table {
    /// Returns the connection to close for a new one: the oldest silent one, or else the oldest that took too long to
    /// authenticate.
    fn oldest(&self, may_go: impl Fn(&Line) -> bool) -> Option<Arc<Line>> {
        let mut candidates = self.unknown.values().filter(|line| may_go(line));
        let silent = |line: &&Arc<Line>| line.stage() == Stage::Silent && line.age() >= SILENCE;
        let slow = |line: &&Arc<Line>| line.age() >= PATIENCE;
        let victim = candidates.clone().find(silent);
        victim.or_else(|| candidates.find(slow)).cloned()
    }

    /// Returns the oldest connection that has sent nothing, however new it is.
    fn oldest_silent(&self, may_go: impl Fn(&Line) -> bool) -> Option<Arc<Line>> {
        let mut lines = self.unknown.values();
        lines
            .find(|line| line.stage() == Stage::Silent && may_go(line))
            .cloned()
    }

    fn end(&mut self, line: &Arc<Line>) {
        self.forget_unknown(line);
        line.close(Close::Now);
    }

    fn forget_unknown(&mut self, line: &Line) -> Option<Arc<Line>> {
        let found = self.unknown.remove(&line.id)?;
        if let Some(count) = self.per_address.get_mut(&line.address) {
            *count -= 1;
            if *count == 0 {
                self.per_address.remove(&line.address);
            }
        }
        Some(found)
    }
}

/// Returns the time of a monotonic clock. It may be a few milliseconds late, and takes less time to read than
/// `Instant::now`: it is read for every request.
fn milliseconds() -> u64 {
    #[cfg(target_os = "linux")]
    let clock = rustix::time::ClockId::MonotonicCoarse;
    #[cfg(not(target_os = "linux"))]
    let clock = rustix::time::ClockId::Monotonic;
    let time = rustix::time::clock_gettime(clock);
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}

/// Returns how many files the process may open.
fn open_files() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let count = limit.current.unwrap_or(1 << 20).min(1 << 20);
    usize::try_from(count).unwrap_or(1 << 20)
}

#[cfg(test)]
mod tests;

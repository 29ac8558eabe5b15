//! State that the engines of all databases need: what is known about the log, and the threads for connections.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bareboat_storage::{BackendError, BackendStats, CommitTimes, ConnectionCounter, Mark};
use parking_lot::Mutex;
use tokio::runtime::{Handle, Runtime};

use crate::block;
use crate::clock::Clock;
use crate::error::SqlError;

/// The pause between two attempts to reach the database.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);
/// The timeout for opening a connection.
pub(crate) const DIAL: Duration = Duration::from_secs(8);
/// The error text for a server that was replaced by another.
pub(crate) const REPLACED: &str =
    "the server has an older epoch: it was replaced by another server";
/// The error text for an attempt to rewrite values.
pub(crate) const NO_REWRITE: &str = "values in a shared database cannot be rewritten in place";

/// The options of a store in a database.
#[derive(Clone, Debug)]
pub struct SqlOptions {
    /// How long an append is repeated while the database cannot be reached.
    pub patience: Duration,
}

impl Default for SqlOptions {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(30),
        }
    }
}

/// State that sessions and tasks share.
pub(crate) struct Engine {
    pub(crate) options: SqlOptions,
    /// Whether tables are created if they are missing.
    pub(crate) create: bool,
    pub(crate) handle: Handle,
    /// The id of the store that appends through this engine.
    pub(crate) writer_id: Mutex<u128>,
    /// The last mark of the log that was seen.
    pub(crate) known: Mutex<Mark>,
    pub(crate) epoch: AtomicU64,
    pub(crate) floor: AtomicU64,
    pub(crate) size: AtomicU64,
    pub(crate) connections: ConnectionCounter,
    /// The times of the first commits.
    pub(crate) commits: CommitTimes,
    pub(crate) clock: Clock,
    pub(crate) closed: AtomicBool,
}

impl Engine {
    pub(crate) fn new(options: SqlOptions, create: bool) -> Result<(Self, Runtime), SqlError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("bareboat-sql")
            .enable_all()
            .build()
            .map_err(SqlError::Runtime)?;
        let engine = Self {
            options,
            create,
            handle: runtime.handle().clone(),
            writer_id: Mutex::new(0),
            known: Mutex::default(),
            epoch: AtomicU64::new(0),
            floor: AtomicU64::new(0),
            size: AtomicU64::new(0),
            connections: ConnectionCounter::default(),
            commits: CommitTimes::default(),
            clock: Clock::default(),
            closed: AtomicBool::new(false),
        };
        Ok((engine, runtime))
    }

    /// Waits for `future` on the current thread. The threads of the engine do the input and output.
    pub(crate) fn block<T>(&self, future: impl Future<Output = T>) -> T {
        let _inside = self.handle.enter();
        // A runtime's thread has a budget of steps, which is renewed only between its tasks.
        block::on(tokio::task::unconstrained(future))
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(crate) fn check_open(&self) -> Result<(), BackendError> {
        match self.is_closed() {
            true => Err(closed()),
            false => Ok(()),
        }
    }

    pub(crate) fn seen_epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    pub(crate) fn seen_floor(&self) -> u64 {
        self.floor.load(Ordering::Acquire)
    }

    /// Stores the epoch of `mark` and the floor of the log. Fails if the epoch shows that the server was replaced.
    pub(crate) fn learn(&self, mark: &Mark, floor: u64) -> Result<(), BackendError> {
        if self.epoch.fetch_max(mark.epoch, Ordering::AcqRel) > mark.epoch {
            return Err(BackendError::Unreachable(REPLACED.into()));
        }
        self.learn_floor(floor);
        Ok(())
    }

    /// Stores `end` as the end of a log that was filled with other content.
    pub(crate) fn restart_at(&self, end: &Mark) {
        self.epoch.fetch_max(end.epoch, Ordering::AcqRel);
        self.floor.store(end.last, Ordering::Release);
        *self.known.lock() = *end;
    }

    /// Returns the statistics that all databases have.
    pub(crate) fn stats(&self, name: &'static str) -> BackendStats {
        BackendStats {
            bytes: self.size.load(Ordering::Relaxed),
            engine: name,
            connections: self.connections.read(),
            clock_ahead_millis: self.clock.ahead(),
            ..BackendStats::default()
        }
    }

    pub(crate) fn learn_floor(&self, floor: u64) {
        self.floor.fetch_max(floor, Ordering::AcqRel);
    }
}

pub(crate) fn closed() -> BackendError {
    BackendError::Unreachable("the store is closed".into())
}

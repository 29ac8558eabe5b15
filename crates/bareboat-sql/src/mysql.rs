//! The log in MySQL or MariaDB.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Instant, SystemTime};

use bareboat_storage::{
    Appended, Attention, Backend, BackendError, BackendStats, Batch, ChangePage, ChangeValue,
    Decide, Mark, PageLimit, Record, Refill, Rewritten, Stop, Sweep, Tail, Written,
    examine::Setting,
};
use parking_lot::Mutex;
use tokio::runtime::Runtime;
use uuid::Uuid;

use crate::engine::{Engine, NO_REWRITE, SqlOptions};
use crate::error::SqlError;
use crate::session::Session;
use address::Address;
use link::Connection;

mod address;
mod append;
mod compact;
mod durable;
mod errors;
mod link;
mod poll;
mod read;
mod refill;
mod rows;
mod schema;
mod session;
#[cfg(feature = "shelf")]
mod shelf;
mod tail;
mod tls;

#[cfg(feature = "shelf")]
pub use shelf::MysqlShelf;

/// A log in a MySQL or MariaDB database, which other servers may use at the same time.
pub struct Mysql {
    inner: Arc<Inner>,
    runtime: Mutex<Option<Runtime>>,
}

impl std::fmt::Debug for Mysql {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mysql")
            .field("database", &self.inner.address.database)
            .finish_non_exhaustive()
    }
}

/// State that sessions share.
struct Inner {
    engine: Engine,
    address: Address,
    /// The session for appends, tails and compaction, which only the sequencer uses.
    writer: Session<Connection>,
    /// The session for the freshness barrier.
    fresh: Session<Connection>,
    /// The session for loading, old watches and old lists.
    cold: Session<Connection>,
    /// The session that polls for the writes of other servers.
    look: Session<Connection>,
    poll: poll::Poll,
    /// The id of this store in the table of replicas.
    id: u128,
    /// Whether commits are in the binary log before they are visible to other sessions.
    has_binlog: AtomicBool,
    free: AtomicU64,
}

impl Deref for Inner {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}

impl Mysql {
    /// Opens the store at a `mysql://` URL, and creates its tables if they are missing. The database must exist.
    pub fn open(url: &str) -> Result<Self, SqlError> {
        Self::open_with(url, SqlOptions::default())
    }

    /// Opens the store at a `mysql://` URL with `options`.
    pub fn open_with(url: &str, options: SqlOptions) -> Result<Self, SqlError> {
        Self::start(url, options, true)
    }

    /// Opens the store at a `mysql://` URL if its tables exist, and creates nothing.
    pub fn open_existing(url: &str) -> Result<Self, SqlError> {
        Self::start(url, SqlOptions::default(), false)
    }

    fn start(url: &str, options: SqlOptions, create: bool) -> Result<Self, SqlError> {
        let address = Address::parse(url)?;
        let (engine, runtime) = Engine::new(options, create)?;
        let inner = Arc::new(Inner {
            engine,
            address,
            writer: Session::default(),
            fresh: Session::default(),
            cold: Session::default(),
            look: Session::default(),
            poll: poll::Poll::default(),
            id: Uuid::new_v4().as_u128(),
            has_binlog: AtomicBool::new(false),
            free: AtomicU64::new(0),
        });
        let backend = Self {
            inner: inner.clone(),
            runtime: Mutex::new(Some(runtime)),
        };
        inner.block(inner.start())?;
        Ok(backend)
    }
}

impl Backend for Mysql {
    fn is_shared(&self) -> bool {
        true
    }

    fn append(&self, base: &Mark, batch: &Batch) -> Result<Appended, BackendError> {
        crate::append::append(&*self.inner, base, batch)
    }

    fn append_held(
        &self,
        base: &Mark,
        decide: &mut Decide<'_>,
    ) -> Result<Option<Appended>, BackendError> {
        crate::append::append_held(&*self.inner, base, decide)
    }

    fn tail(&self, after: &Mark) -> Result<Tail, BackendError> {
        crate::append::tail(&*self.inner, after)
    }

    fn wait(&self, _after: u64, until: Instant) -> bool {
        self.inner.wait(until)
    }

    fn attend(&self, attention: Attention) {
        self.inner.poll.attend(attention);
    }

    fn load(&self, after: u64, visit: &mut dyn FnMut(Record)) -> Result<Mark, BackendError> {
        self.inner.load(after, visit)
    }

    fn refill(&self, step: Refill<'_>) -> Result<(), BackendError> {
        self.inner.refill(step)
    }

    fn is_complete(&self) -> Result<bool, BackendError> {
        self.inner.is_complete()
    }

    fn next_epoch(&self, beyond: u64) -> Result<Mark, BackendError> {
        self.inner.next_epoch(beyond)
    }

    fn read_since(
        &self,
        resource: Option<&str>,
        after: u64,
        upto: u64,
        limit: PageLimit,
        stop: &Stop,
    ) -> Result<ChangePage, BackendError> {
        self.inner.read_since(resource, after, upto, limit, stop)
    }

    fn read_at(
        &self,
        resource: &str,
        revision: u64,
        visit: &mut dyn FnMut(Record),
        stop: &Stop,
    ) -> Result<(), BackendError> {
        self.inner.read_at(resource, revision, visit, stop)
    }

    fn compact(&self, upto: u64, rows: usize) -> Result<Sweep, BackendError> {
        self.inner.compact(upto, rows)
    }

    fn history(&self, visit: &mut dyn FnMut(Written)) -> Result<(), BackendError> {
        self.inner.history(visit)
    }

    fn places(&self, visit: &mut dyn FnMut(Mark)) -> Result<(), BackendError> {
        self.inner.places(visit)
    }

    fn settings(&self) -> Result<Vec<Setting>, BackendError> {
        self.inner.settings()
    }

    fn revision_before(&self, time: SystemTime) -> Result<u64, BackendError> {
        self.inner.revision_before(time)
    }

    fn compacted(&self) -> u64 {
        self.inner.seen_floor()
    }

    fn mark(&self) -> Result<Mark, BackendError> {
        self.inner.mark(&self.inner.fresh)
    }

    fn rewrite(&self, change: &mut ChangeValue<'_>) -> Result<Rewritten, BackendError> {
        let _ = change;
        Err(BackendError::Failed(NO_REWRITE.into()))
    }

    fn stats(&self) -> BackendStats {
        BackendStats {
            free_bytes: self.inner.free.load(Ordering::Relaxed),
            ..self.inner.engine.stats("mysql")
        }
    }

    fn close(&self) -> Result<(), BackendError> {
        let inner = &self.inner;
        inner.engine.close();
        inner.poll.close();
        for session in [&inner.writer, &inner.fresh, &inner.cold, &inner.look] {
            session.close();
        }
        Ok(())
    }
}

impl Drop for Mysql {
    fn drop(&mut self) {
        self.inner.engine.close();
        self.inner.poll.close();
        if let Some(runtime) = self.runtime.lock().take() {
            // Do not wait: the last owner may be a task of another runtime.
            runtime.shutdown_background();
        }
    }
}

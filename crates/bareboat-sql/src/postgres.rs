//! The log in PostgreSQL.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Instant, SystemTime};

use bareboat_storage::{
    Appended, Backend, BackendError, BackendStats, Batch, ChangePage, ChangeValue, Decide, Mark,
    PageLimit, Record, Refill, Rewritten, Stop, Sweep, Tail, Written, examine::Setting,
};
use parking_lot::Mutex;
use tokio::runtime::Runtime;

use crate::engine::{Engine, NO_REWRITE, SqlOptions, closed};
use crate::error::{SqlError, read_failed};
use crate::session::Session;
use address::Address;
use session::{Connection, mark_of};

mod address;
mod append;
mod errors;
mod listen;
mod pooler;
mod read;
mod refill;
mod schema;
mod session;
#[cfg(feature = "shelf")]
mod shelf;
mod tls;

#[cfg(feature = "shelf")]
pub use shelf::PostgresShelf;

/// A log in a PostgreSQL database, which other servers may use at the same time.
pub struct Postgres {
    inner: Arc<Inner>,
    runtime: Mutex<Option<Runtime>>,
}

impl std::fmt::Debug for Postgres {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Postgres")
            .field("schema", &self.inner.address.schema)
            .finish_non_exhaustive()
    }
}

/// State that sessions and tasks share.
struct Inner {
    engine: Engine,
    address: Address,
    /// The session for appends, tails and compaction, which only the sequencer uses.
    writer: Session<Connection>,
    /// The session for the freshness barrier.
    fresh: Session<Connection>,
    /// The session for loading, old watches and old lists.
    cold: Session<Connection>,
    heard: listen::Heard,
    /// The oid of the schema: the second half of the store's lock key.
    oid: AtomicU32,
}

impl Deref for Inner {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}

impl Postgres {
    /// Opens the store at a `postgres://` URL, and creates its tables if they are missing.
    pub fn open(url: &str) -> Result<Self, SqlError> {
        Self::open_with(url, SqlOptions::default())
    }

    /// Opens the store at a `postgres://` URL with `options`.
    pub fn open_with(url: &str, options: SqlOptions) -> Result<Self, SqlError> {
        Self::start(url, options, true)
    }

    /// Opens the store at a `postgres://` URL if its tables exist, and creates nothing.
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
            heard: listen::Heard::default(),
            oid: AtomicU32::new(0),
        });
        let backend = Self {
            inner: inner.clone(),
            runtime: Mutex::new(Some(runtime)),
        };
        inner.block(inner.start())?;
        inner.handle.spawn(listen::run(inner.clone()));
        Ok(backend)
    }
}

impl Inner {
    /// Returns the second half of the store's lock key.
    fn key(&self) -> i32 {
        self.oid.load(Ordering::Acquire) as i32
    }

    fn channel(&self) -> String {
        format!("bareboat_{}", self.oid.load(Ordering::Acquire))
    }

    fn mark(&self) -> Result<Mark, BackendError> {
        let mut held = self.fresh.get(self)?;
        let Some(connection) = held.as_ref() else {
            return Err(closed());
        };
        match self.block(connection.client.query_one(&connection.mark, &[])) {
            Ok(row) => {
                let mark = mark_of(&row);
                self.learn(&mark, row.get::<_, i64>(4) as u64)?;
                self.heard.see(mark.last);
                Ok(mark)
            }
            Err(error) => {
                *held = None;
                Err(read_failed(error))
            }
        }
    }
}

impl Backend for Postgres {
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
        let inner = &*self.inner;
        // Without news, one statement shows that nothing is missing.
        if !inner.heard.is_beyond(after.last) && inner.mark().is_ok_and(|end| end == *after) {
            *inner.known.lock() = *after;
            return Ok(Tail::empty(*after));
        }
        crate::append::tail(inner, after)
    }

    fn wait(&self, after: u64, until: Instant) -> bool {
        self.inner.heard.wait(after, until)
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
        self.inner.durability()
    }

    fn revision_before(&self, time: SystemTime) -> Result<u64, BackendError> {
        self.inner.revision_before(time)
    }

    fn compacted(&self) -> u64 {
        self.inner.seen_floor()
    }

    fn mark(&self) -> Result<Mark, BackendError> {
        self.inner.mark()
    }

    fn rewrite(&self, change: &mut ChangeValue<'_>) -> Result<Rewritten, BackendError> {
        let _ = change;
        Err(BackendError::Failed(NO_REWRITE.into()))
    }

    fn stats(&self) -> BackendStats {
        self.inner.engine.stats("postgres")
    }

    fn close(&self) -> Result<(), BackendError> {
        self.inner.engine.close();
        self.inner.heard.close();
        for session in [&self.inner.writer, &self.inner.fresh, &self.inner.cold] {
            session.close();
        }
        Ok(())
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.inner.engine.close();
        self.inner.heard.close();
        if let Some(runtime) = self.runtime.lock().take() {
            // Do not wait: the last owner may be a task of another runtime.
            runtime.shutdown_background();
        }
    }
}

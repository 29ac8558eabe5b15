//! The log in PostgreSQL.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bareboat_storage::{
    Appended, Backend, BackendError, BackendStats, Batch, ChangePage, ChangeValue, Decide, Mark,
    PageLimit, Record, Rewritten, Stop, Sweep, Tail, Written,
};
use parking_lot::Mutex;
use tokio::runtime::{Handle, Runtime};

use crate::address::Address;
use crate::error::{SqlError, read_failed};
use session::{Session, mark_of};

mod append;
mod block;
mod listen;
mod read;
mod schema;
mod session;

/// The pause between two tries to reach the database.
const PAUSE: Duration = Duration::from_millis(100);

/// The options of a store in a database.
#[derive(Clone, Debug)]
pub struct SqlOptions {
    /// How long an append is repeated when the database cannot be reached.
    pub patience: Duration,
}

impl Default for SqlOptions {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(30),
        }
    }
}

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

/// What sessions and tasks share.
struct Inner {
    address: Address,
    options: SqlOptions,
    handle: Handle,
    /// Appends, tails and compaction, all by the sequencer.
    writer: Session,
    /// The freshness barrier.
    fresh: Session,
    /// Loading, old watches, old lists.
    cold: Session,
    heard: listen::Heard,
    /// The number of the schema: the second half of the key of the store's lock.
    oid: AtomicU32,
    /// The store that appends through this engine.
    writer_id: Mutex<u128>,
    /// The last position in the log that was seen.
    known: Mutex<Mark>,
    epoch: AtomicU64,
    floor: AtomicU64,
    size: AtomicU64,
    closed: AtomicBool,
}

impl Postgres {
    /// Opens the store at a `postgres://` URL, and creates its tables if they are missing.
    pub fn open(url: &str) -> Result<Self, SqlError> {
        Self::open_with(url, SqlOptions::default())
    }

    /// Opens a store with options.
    pub fn open_with(url: &str, options: SqlOptions) -> Result<Self, SqlError> {
        let address = Address::parse(url)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("bareboat-sql")
            .enable_all()
            .build()
            .map_err(SqlError::Runtime)?;
        let inner = Arc::new(Inner {
            address,
            options,
            handle: runtime.handle().clone(),
            writer: Session::default(),
            fresh: Session::default(),
            cold: Session::default(),
            heard: listen::Heard::default(),
            oid: AtomicU32::new(0),
            writer_id: Mutex::new(0),
            known: Mutex::default(),
            epoch: AtomicU64::new(0),
            floor: AtomicU64::new(0),
            size: AtomicU64::new(0),
            closed: AtomicBool::new(false),
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

fn closed() -> BackendError {
    BackendError::Unreachable("the store is closed".into())
}

impl Inner {
    /// Waits for a future. The threads of the engine do the input and output.
    fn block<T>(&self, future: impl Future<Output = T>) -> T {
        let _inside = self.handle.enter();
        block::on(future)
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn check_open(&self) -> Result<(), BackendError> {
        match self.is_closed() {
            true => Err(closed()),
            false => Ok(()),
        }
    }

    /// Returns the second half of the key of the store's lock.
    fn key(&self) -> i32 {
        self.oid.load(Ordering::Acquire) as i32
    }

    fn channel(&self) -> String {
        format!("bareboat_{}", self.oid.load(Ordering::Acquire))
    }

    fn seen_epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Records the epoch and the floor of the log; fails if the server is one that was replaced.
    fn learn(&self, mark: &Mark, floor: u64) -> Result<(), BackendError> {
        if self.epoch.fetch_max(mark.epoch, Ordering::AcqRel) > mark.epoch {
            let why = "the server has an older epoch: it was replaced by another one";
            return Err(BackendError::Unreachable(why.into()));
        }
        self.floor.fetch_max(floor, Ordering::AcqRel);
        Ok(())
    }

    fn mark(self: &Arc<Self>) -> Result<Mark, BackendError> {
        let mut held = self.fresh.get(self)?;
        let Some(connection) = held.as_ref() else {
            return Err(closed());
        };
        match self.block(connection.client.query_one(&connection.mark, &[])) {
            Ok(row) => {
                let mark = mark_of(&row);
                self.learn(&mark, row.get::<_, i64>(4) as u64)?;
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
        self.inner.append(base, batch)
    }

    fn append_held(
        &self,
        base: &Mark,
        decide: &mut Decide<'_>,
    ) -> Result<Option<Appended>, BackendError> {
        self.inner.append_held(base, decide)
    }

    fn tail(&self, after: &Mark) -> Result<Tail, BackendError> {
        self.inner.tail(after)
    }

    fn wait(&self, after: u64, until: Instant) {
        self.inner.heard.wait(after, until);
    }

    fn load(&self, after: u64, visit: &mut dyn FnMut(Record)) -> Result<Mark, BackendError> {
        self.inner.load(after, visit)
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

    fn compacted(&self) -> u64 {
        self.inner.floor.load(Ordering::Acquire)
    }

    fn mark(&self) -> Result<Mark, BackendError> {
        self.inner.mark()
    }

    fn rewrite(&self, change: &mut ChangeValue<'_>) -> Result<Rewritten, BackendError> {
        let _ = change;
        let why = "values in a shared database cannot be rewritten in place";
        Err(BackendError::Failed(why.into()))
    }

    fn stats(&self) -> BackendStats {
        BackendStats {
            bytes: self.inner.size.load(Ordering::Relaxed),
            free_bytes: 0,
        }
    }

    fn close(&self) -> Result<(), BackendError> {
        self.inner.closed.store(true, Ordering::Release);
        self.inner.heard.close();
        for session in [&self.inner.writer, &self.inner.fresh, &self.inner.cold] {
            session.close();
        }
        Ok(())
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.inner.closed.store(true, Ordering::Release);
        self.inner.heard.close();
        if let Some(runtime) = self.runtime.lock().take() {
            // It does not wait: the last owner may be a task of another runtime.
            runtime.shutdown_background();
        }
    }
}

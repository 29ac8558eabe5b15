//! The log in etcd: the state that its parts share, and the interface for the store.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use bareboat_storage::{
    Appended, Backend, BackendError, BackendStats, Batch, ChangePage, ChangeValue, CommitTimes,
    ConnectionCounter, Decide, Limits, Mark, PageLimit, Record, Refill, Rewritten, Stop, Sweep,
    Tail, Written, examine::Setting,
};
use parking_lot::Mutex;
use tokio::runtime::{Handle, Runtime};

use crate::address::Address;
use crate::compact::Freeing;
use crate::error::EtcdError;
use crate::layout::Keys;
use crate::listen::{self, Heard};
use crate::session::Session;

/// The maximum number of records in one transaction: etcd accepts 128 operations, and two write the row and the end of
/// the log.
pub(crate) const RECORDS: u64 = 126;
/// The maximum size of a batch. etcd accepts requests of 1.5 MiB; the rest is for rows, trailers and keys.
const BATCH_BYTES: usize = 5 << 18;
const VALUE_BYTES: usize = (3 << 19) - (16 << 10);

/// The options of a store in etcd.
#[derive(Clone, Debug)]
pub struct EtcdOptions {
    /// How long an append is repeated while the cluster cannot be reached.
    pub patience: Duration,
}

impl Default for EtcdOptions {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(30),
        }
    }
}

/// A log in an etcd cluster, which other servers may use at the same time.
pub struct Etcd {
    inner: Arc<Inner>,
    runtime: Mutex<Option<Runtime>>,
}

impl std::fmt::Debug for Etcd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Etcd")
            .field("prefix", &self.inner.address.prefix)
            .finish_non_exhaustive()
    }
}

/// State that connections and tasks share.
pub(crate) struct Inner {
    pub(crate) address: Address,
    pub(crate) options: EtcdOptions,
    /// Whether the store is created if it is missing.
    pub(crate) create: bool,
    pub(crate) keys: Keys,
    handle: Handle,
    /// The index of the member that is tried first.
    pub(crate) endpoint: AtomicUsize,
    /// The session for appends, tails and compaction, which only the sequencer uses.
    pub(crate) writer: Session,
    /// The session for the freshness barrier.
    fresh: Session,
    /// The session for loading, old watches and old lists.
    pub(crate) cold: Session,
    pub(crate) heard: Heard,
    /// The id of the store that appends through this engine.
    pub(crate) writer_id: Mutex<u128>,
    /// The last mark of the log that was seen.
    known: Mutex<Mark>,
    epoch: AtomicU64,
    pub(crate) floor: AtomicU64,
    pub(crate) size: AtomicU64,
    pub(crate) in_use: AtomicU64,
    /// The maximum size of the cluster's data; 0 if the cluster does not report it.
    pub(crate) quota: AtomicU64,
    pub(crate) freeing: Mutex<Freeing>,
    pub(crate) connections: ConnectionCounter,
    /// The times of the first commits.
    pub(crate) commits: CommitTimes,
    closed: AtomicBool,
}

impl Etcd {
    /// Opens the store at an `etcd://` URL, and creates it if it is missing.
    pub fn open(url: &str) -> Result<Self, EtcdError> {
        Self::open_with(url, EtcdOptions::default())
    }

    /// Opens the store at an `etcd://` URL with `options`.
    pub fn open_with(url: &str, options: EtcdOptions) -> Result<Self, EtcdError> {
        Self::start(url, options, true)
    }

    /// Opens the store at an `etcd://` URL if it exists, and creates nothing.
    pub fn open_existing(url: &str) -> Result<Self, EtcdError> {
        Self::start(url, EtcdOptions::default(), false)
    }

    fn start(url: &str, options: EtcdOptions, create: bool) -> Result<Self, EtcdError> {
        let address = Address::parse(url)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("bareboat-etcd")
            .enable_all()
            .build()
            .map_err(EtcdError::Runtime)?;
        let inner = Arc::new(Inner {
            keys: Keys::new(&address.prefix),
            address,
            options,
            create,
            handle: runtime.handle().clone(),
            endpoint: AtomicUsize::new(0),
            writer: Session::default(),
            fresh: Session::default(),
            cold: Session::default(),
            heard: Heard::default(),
            writer_id: Mutex::new(0),
            known: Mutex::default(),
            epoch: AtomicU64::new(0),
            floor: AtomicU64::new(0),
            size: AtomicU64::new(0),
            in_use: AtomicU64::new(0),
            quota: AtomicU64::new(0),
            freeing: Mutex::default(),
            connections: ConnectionCounter::default(),
            commits: CommitTimes::default(),
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

impl Inner {
    /// Waits for `future` on the current thread. The threads of the engine do the input and output.
    pub(crate) fn block<T>(&self, future: impl Future<Output = T>) -> T {
        let _inside = self.handle.enter();
        // A runtime's thread has a budget of steps, which is renewed only between its tasks.
        crate::block::on(tokio::task::unconstrained(future))
    }

    /// Runs a task on the threads of the engine, until the engine is dropped.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(task);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(crate) fn check_open(&self) -> Result<(), BackendError> {
        match self.is_closed() {
            true => Err(BackendError::Unreachable("the store is closed".into())),
            false => Ok(()),
        }
    }

    pub(crate) fn seen_epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    pub(crate) fn known(&self) -> Mark {
        *self.known.lock()
    }

    pub(crate) fn set_known(&self, mark: Mark) {
        *self.known.lock() = mark;
    }

    /// Stores the epoch of `mark` and the floor of the log. Fails if the epoch shows that the cluster was replaced.
    pub(crate) fn learn(&self, mark: &Mark, floor: u64) -> Result<(), BackendError> {
        if self.epoch.fetch_max(mark.epoch, Ordering::AcqRel) > mark.epoch {
            let why = "the cluster has an older epoch: it was replaced by another cluster";
            return Err(BackendError::Unreachable(why.into()));
        }
        self.floor.fetch_max(floor, Ordering::AcqRel);
        Ok(())
    }

    /// Reads the end of the log.
    fn mark(self: &Arc<Self>) -> Result<Mark, BackendError> {
        let known = self.known();
        let (mark, ..) = self
            .fresh
            .call(self, async |channel| self.end(channel).await)?;
        if mark.epoch == known.epoch && mark.last < known.last {
            // The thread that follows the log begins another epoch.
            let why = "the cluster lacks writes that were acknowledged";
            return Err(BackendError::Unreachable(why.into()));
        }
        Ok(mark)
    }
}

/// Returns the current time in milliseconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u64)
}

impl Backend for Etcd {
    fn is_shared(&self) -> bool {
        true
    }

    fn limits(&self) -> Limits {
        Limits {
            records: RECORDS as usize,
            bytes: BATCH_BYTES,
            value_bytes: VALUE_BYTES,
        }
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

    fn wait(&self, after: u64, until: Instant) -> bool {
        self.inner.heard.wait(after, until)
    }

    fn load(&self, after: u64, visit: &mut dyn FnMut(Record)) -> Result<Mark, BackendError> {
        self.inner.load(after, visit)
    }

    fn dump(
        &self,
        after: u64,
        visit: &mut dyn FnMut(Record),
        stop: &Stop,
    ) -> Result<Mark, BackendError> {
        self.inner.dump(after, visit, stop)
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
        self.inner.floor.load(Ordering::Acquire)
    }

    fn mark(&self) -> Result<Mark, BackendError> {
        self.inner.mark()
    }

    fn rewrite(&self, change: &mut ChangeValue<'_>) -> Result<Rewritten, BackendError> {
        let _ = change;
        let why = "values in a shared cluster cannot be rewritten in place";
        Err(BackendError::Failed(why.into()))
    }

    fn release_space(&self) -> Result<bool, BackendError> {
        self.inner.release_space()
    }

    fn stats(&self) -> BackendStats {
        let bytes = self.inner.size.load(Ordering::Relaxed);
        let quota = self.inner.quota.load(Ordering::Relaxed);
        BackendStats {
            bytes,
            free_bytes: bytes.saturating_sub(self.inner.in_use.load(Ordering::Relaxed)),
            // etcd compares the size of its file with the quota, including unused pages.
            available_bytes: (quota > 0).then(|| quota.saturating_sub(bytes)),
            engine: "etcd",
            connections: self.inner.connections.read(),
            clock_ahead_millis: None,
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

impl Drop for Etcd {
    fn drop(&mut self) {
        self.inner.closed.store(true, Ordering::Release);
        self.inner.heard.close();
        if let Some(runtime) = self.runtime.lock().take() {
            // Do not wait: the last owner may be a task of another runtime.
            runtime.shutdown_background();
        }
    }
}

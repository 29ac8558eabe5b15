//! The interface of a storage engine: a few blocking batch methods that hold the log.
//!
//! The methods block on purpose. The sequencer is a separate thread that only commits. It calls a
//! local engine directly, so a single writer waits for little more than the fsync. A remote engine
//! keeps a handle of its runtime and blocks on it. Cold reads run on a small thread pool of the
//! store, never on a caller's task.
//!
//! Engines store bytes and revisions. The store above them handles order, conflicts, watches and
//! the history in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime};

use crate::batch::{Appended, Batch, Mark, Tail};
use crate::connections::Connections;
use crate::examine::Setting;
use crate::refill::Refill;
use crate::value::Value;

/// Any error, as the source of ours.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// One record of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The revision of the record: the primary key of the log.
    pub revision: u64,
    /// The revision that this one replaces, 0 if the key did not exist. A tombstone ends the chain:
    /// the next creation starts again with 0.
    pub prev: u64,
    /// The logical cluster; empty for the default one.
    pub cluster: Arc<str>,
    /// The resource, such as `apps/deployments`.
    pub resource: Arc<str>,
    /// The key within the resource, `namespace/name` or `name`.
    pub key: Arc<str>,
    /// Who wrote the record, as JSON; `None` if unknown. Engines store it and do not look into it.
    pub actor: Option<Arc<str>>,
    /// The object without resourceVersion; `None` is a tombstone.
    pub value: Option<Value>,
}

/// A record and the one it replaced.
#[derive(Clone, Debug, PartialEq)]
pub struct LogChange {
    /// The new record; a tombstone for a deletion.
    pub record: Record,
    /// The previous record, absent for a creation.
    pub previous: Option<Record>,
}

impl LogChange {
    /// Bytes of both values, with a fixed share for everything else.
    pub fn weight(&self) -> usize {
        const FIXED: usize = 256;
        let len = |record: &Record| record.value.as_ref().map_or(0, Value::len);
        FIXED + len(&self.record) + self.previous.as_ref().map_or(0, len)
    }
}

/// The maximum size of one page of changes: it ends with the change that reaches either limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLimit {
    /// The maximum number of changes.
    pub changes: usize,
    /// Bytes of values, as [`LogChange::weight`] counts them. One change is always given, however large.
    pub bytes: usize,
}

/// A page of consecutive changes of the log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChangePage {
    /// The changes in order.
    pub changes: Vec<LogChange>,
    /// The bytes of these changes, as [`LogChange::weight`] counts them.
    pub bytes: usize,
    /// The page contains all changes up to this revision.
    pub complete_to: u64,
}

impl ChangePage {
    /// Appends a change; whether the page is full with it.
    pub fn push(&mut self, change: LogChange, limit: PageLimit) -> bool {
        self.bytes += change.weight();
        self.complete_to = change.record.revision;
        self.changes.push(change);
        self.changes.len() >= limit.changes || self.bytes >= limit.bytes
    }
}

/// A flag that ends a read early, because its result is no longer needed.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Requests the read to end.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns whether the read should end. Engines check this every few thousand rows.
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Fails if the read should end.
    pub fn check(&self) -> Result<(), BackendError> {
        match self.requested() {
            true => Err(BackendError::Stopped),
            false => Ok(()),
        }
    }
}

/// The time at which a part of the history was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The last revision of the part.
    pub last: u64,
    /// The time, by the clock of the machine.
    pub at: SystemTime,
    /// Bytes of its keys and values.
    pub bytes: u64,
}

/// Who waits for the writes of other stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Attention {
    /// Nobody.
    #[default]
    Nobody,
    /// Watchers: they take events when there are some.
    Watchers,
    /// Reads, for a revision that is not here yet.
    Reads,
}

/// The remaining work after a slice of compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// More rows remain below the floor.
    More,
    /// No rows remain below the floor.
    Done,
}

/// The sizes of an engine's log, and its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackendStats {
    /// The bytes of the log in its storage.
    pub bytes: u64,
    /// The unused bytes among them, which will be reused or released.
    pub free_bytes: u64,
    /// The bytes by which it can still grow, if known.
    pub available_bytes: Option<u64>,
    /// The name of the engine for metrics, such as `sqlite`; empty if it has none.
    pub engine: &'static str,
    /// The connections to a database.
    pub connections: Connections,
    /// By how many milliseconds the clock of the database is ahead of ours (negative: behind), if known.
    pub clock_ahead_millis: Option<i64>,
}

/// The result of [`Backend::rewrite`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rewritten {
    /// The values that were read, including old values in the history.
    pub values: u64,
    /// The values that were replaced.
    pub rewritten: u64,
}

/// The largest batch and value that an engine takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Records of one batch.
    pub records: usize,
    /// Bytes of one batch of several records: values, keys and actors.
    pub bytes: usize,
    /// Bytes of one value. A single record may have it all, whatever `bytes` is.
    pub value_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            records: usize::MAX,
            bytes: usize::MAX,
            value_bytes: usize::MAX,
        }
    }
}

/// Gets a stored record; returns another value for it, or nothing to keep it.
pub type ChangeValue<'a> = dyn FnMut(&Record) -> Result<Option<Value>, BoxError> + 'a;

/// Takes in what follows a place; returns a batch and the place it shall follow.
pub type Decide<'a> = dyn FnMut(Tail) -> Option<(Mark, Batch)> + 'a;

/// The error of an engine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// No space left: the batch was rolled back, reads still work.
    #[error("no space left for the log")]
    Full(#[source] BoxError),
    /// Another program holds a lock on the log: nothing was written, and a retry may work.
    #[error("the log is locked by another program")]
    Busy(#[source] BoxError),
    /// History up to `floor` is compacted.
    #[error("revisions before {floor} have been compacted")]
    Compacted {
        /// The oldest revision at which reads are still exact.
        floor: u64,
    },
    /// A [`Stop`] ended the read.
    #[error("the read was stopped")]
    Stopped,
    /// The log cannot be reached: nothing was written, and a retry may work.
    #[error("the log cannot be reached")]
    Unreachable(#[source] BoxError),
    /// The connection to the log was lost during an append, and its outcome is not known yet: the same batch must be
    /// appended again before any other.
    #[error("the connection to the log was lost during a write")]
    Unknown(#[source] BoxError),
    /// The log is damaged or unusable; after an append it is unknown whether the batch is durable.
    /// The store takes no more writes.
    #[error("the log failed")]
    Failed(#[source] BoxError),
}

/// An engine that holds the log.
///
/// An engine that counts batches, around the one in memory:
///
/// ```
/// # mod bareboat { pub mod storage { pub use bareboat_storage::*; } }
/// use bareboat::storage::*;
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// struct Counting {
///     inner: MemoryBackend,
///     batches: AtomicUsize,
/// }
///
/// impl Backend for Counting {
///     fn append(&self, base: &Mark, batch: &Batch) -> Result<Appended, BackendError> {
///         self.batches.fetch_add(1, Ordering::Relaxed);
///         self.inner.append(base, batch)
///     }
///     fn load(&self, after: u64, visit: &mut dyn FnMut(Record)) -> Result<Mark, BackendError> {
///         self.inner.load(after, visit)
///     }
///     fn read_since(
///         &self,
///         resource: Option<&str>,
///         after: u64,
///         upto: u64,
///         limit: PageLimit,
///         stop: &Stop,
///     ) -> Result<ChangePage, BackendError> {
///         self.inner.read_since(resource, after, upto, limit, stop)
///     }
///     fn read_at(
///         &self,
///         resource: &str,
///         revision: u64,
///         visit: &mut dyn FnMut(Record),
///         stop: &Stop,
///     ) -> Result<(), BackendError> {
///         self.inner.read_at(resource, revision, visit, stop)
///     }
///     fn compact(&self, upto: u64, rows: usize) -> Result<Sweep, BackendError> {
///         self.inner.compact(upto, rows)
///     }
///     fn compacted(&self) -> u64 {
///         self.inner.compacted()
///     }
///     fn mark(&self) -> Result<Mark, BackendError> {
///         self.inner.mark()
///     }
/// }
/// ```
pub trait Backend: Send + Sync + 'static {
    /// Returns whether other stores may write to the log too. Then the store above asks for what they
    /// wrote with `tail`, `mark` and `wait`.
    fn is_shared(&self) -> bool {
        false
    }

    /// Returns the largest batch that the engine takes. The store makes no larger ones, and refuses
    /// transactions that fit into none.
    fn limits(&self) -> Limits {
        Limits::default()
    }

    /// Adds a batch to the end of the log, all of it or nothing, and makes it durable, if the log still
    /// ends at `base`. Called by one thread at a time.
    ///
    /// A batch that is in the log already, with the same first revision and the same id, is `Done`.
    fn append(&self, base: &Mark, batch: &Batch) -> Result<Appended, BackendError>;

    /// Appends while nobody else can: keeps others out, gives what follows `base` to `decide`, and
    /// appends the batch that it returns, at the place that it returns. `None` if it returns nothing.
    ///
    /// An engine without such a lock appends as usual, and may return `Moved`.
    fn append_held(
        &self,
        base: &Mark,
        decide: &mut Decide<'_>,
    ) -> Result<Option<Appended>, BackendError> {
        match decide(self.tail(base)?) {
            Some((base, batch)) => self.append(&base, &batch).map(Some),
            None => Ok(None),
        }
    }

    /// Returns what follows `after`, in whole batches, up to a few MiB. The engine checks their
    /// digests.
    fn tail(&self, after: &Mark) -> Result<Tail, BackendError> {
        Ok(Tail::empty(*after))
    }

    /// Waits until the log may have grown beyond `after` by the writes of others, or until `until`.
    /// Only a hint: it may return too early or too late.
    fn wait(&self, after: u64, until: Instant) {
        let _ = after;
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
    }

    /// Learns who waits for the writes of others. Only a hint, for an engine that must ask for them again and again:
    /// it may ask less often while nobody waits.
    fn attend(&self, attention: Attention) {
        let _ = attention;
    }

    /// Visits the state as of `after` (its records without tombstones), then every later record,
    /// all in order of revision. Records that were replaced up to `after` are not read: a long
    /// history must not slow down opening a store. Returns the place after the last visited record.
    fn load(&self, after: u64, visit: &mut dyn FnMut(Record)) -> Result<Mark, BackendError>;

    /// The same as `load` for backups: the state comes in any order, nothing is kept in memory, and no writer waits. It
    /// may end early if `stop` is requested.
    fn dump(
        &self,
        after: u64,
        visit: &mut dyn FnMut(Record),
        stop: &Stop,
    ) -> Result<Mark, BackendError> {
        let _ = stop;
        self.load(after, visit)
    }

    /// Takes the content of another log, step by step. Nobody else uses the log meanwhile.
    fn refill(&self, step: Refill<'_>) -> Result<(), BackendError> {
        let _ = step;
        Err(BackendError::Failed(
            "this engine does not take the content of another log".into(),
        ))
    }

    /// Returns whether the log is complete: not between the first and the last step of [`Backend::refill`].
    fn is_complete(&self) -> Result<bool, BackendError> {
        Ok(true)
    }

    /// Begins another epoch: the counter jumps by 2^20 above `beyond` and all revisions of the log, and history begins
    /// there. Returns the new end of the log.
    fn next_epoch(&self, beyond: u64) -> Result<Mark, BackendError> {
        let _ = beyond;
        Err(BackendError::Failed("this engine has no epochs".into()))
    }

    /// Returns a page of the changes of a resource (or of all) with `after < revision <= upto`, in
    /// order. A page that is not full is complete up to `upto`.
    ///
    /// Fails with `Compacted` if the floor is above `after` when the read ends.
    fn read_since(
        &self,
        resource: Option<&str>,
        after: u64,
        upto: u64,
        limit: PageLimit,
        stop: &Stop,
    ) -> Result<ChangePage, BackendError>;

    /// Visits the records of a resource at `revision`, in any order, without tombstones.
    ///
    /// Fails with `Compacted` if the floor is above `revision` when the read ends.
    fn read_at(
        &self,
        resource: &str,
        revision: u64,
        visit: &mut dyn FnMut(Record),
        stop: &Stop,
    ) -> Result<(), BackendError>;

    /// Raises the floor to `upto` and deletes up to about `rows` records that are no longer needed.
    ///
    /// The floor must be durable before the first row is deleted; the next call deletes rows that a
    /// crash left behind.
    fn compact(&self, upto: u64, rows: usize) -> Result<Sweep, BackendError>;

    /// Visits the times at which the history above the floor was written, in order. An engine
    /// without this information visits nothing; then the history counts as written when the store
    /// was opened.
    fn history(&self, visit: &mut dyn FnMut(Written)) -> Result<(), BackendError> {
        let _ = visit;
        Ok(())
    }

    /// Visits the ends of the batches of the history, in order, from the one at the floor on. An engine without digests
    /// visits nothing.
    fn places(&self, visit: &mut dyn FnMut(Mark)) -> Result<(), BackendError> {
        let _ = visit;
        Ok(())
    }

    /// Returns the settings of the engine that matter for durability, with advice about those that are wrong.
    fn settings(&self) -> Result<Vec<Setting>, BackendError> {
        Ok(Vec::new())
    }

    /// Returns the floor: reads at it are exact and watches after it are complete; there are no
    /// guarantees below it.
    fn compacted(&self) -> u64;

    /// Returns the end of the log: everything that was acknowledged to anyone before this call is
    /// before it. Its last revision may be that of a compacted record; it is never 0 in an open store.
    fn mark(&self) -> Result<Mark, BackendError>;

    /// Replaces stored values in place, history included. Revisions stay the same. All values are replaced or none, and
    /// nothing of the old values stays where the log is kept. Commits wait meanwhile. An engine that keeps nothing at rest
    /// does nothing.
    fn rewrite(&self, change: &mut ChangeValue<'_>) -> Result<Rewritten, BackendError> {
        let _ = change;
        Ok(Rewritten::default())
    }

    /// Returns the size of the log and other numbers for metrics.
    fn stats(&self) -> BackendStats {
        BackendStats::default()
    }

    /// Flushes, and releases locks and files. Later calls fail.
    fn close(&self) -> Result<(), BackendError> {
        Ok(())
    }
}

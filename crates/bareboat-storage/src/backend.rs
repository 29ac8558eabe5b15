//! The interface of a storage engine, which stores the log: a few blocking batch methods.
//!
//! The methods block on purpose. The sequencer is a separate thread that only commits. It calls a local engine
//! directly, so a single writer waits for little more than the fsync. A remote engine keeps a handle of its runtime and
//! blocks on it. Cold reads run on a small thread pool of the store, never on a caller's task.
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

/// An error of any type, used as the source of this crate's errors.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// One record of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The revision of the record: the primary key of the log.
    pub revision: u64,
    /// The revision that this record replaces; 0 if the key did not exist. A tombstone ends the chain: the next
    /// creation starts again with 0.
    pub prev: u64,
    /// The logical cluster; empty for the default one.
    pub cluster: Arc<str>,
    /// The resource, such as `apps/deployments`.
    pub resource: Arc<str>,
    /// The key within the resource, `namespace/name` or `name`.
    pub key: Arc<str>,
    /// Who wrote the record, as JSON; `None` if unknown. Engines store the text without interpreting it.
    pub actor: Option<Arc<str>>,
    /// The object without resourceVersion; `None` is a tombstone.
    pub value: Option<Value>,
}

/// A record and the record that it replaced.
#[derive(Clone, Debug, PartialEq)]
pub struct LogChange {
    /// The new record; a tombstone for a deletion.
    pub record: Record,
    /// The previous record, absent for a creation.
    pub previous: Option<Record>,
}

impl LogChange {
    /// Returns the bytes of both values, plus a fixed amount for everything else.
    pub fn weight(&self) -> usize {
        const FIXED: usize = 256;
        let len = |record: &Record| record.value.as_ref().map_or(0, Value::len);
        FIXED + len(&self.record) + self.previous.as_ref().map_or(0, len)
    }
}

/// The maximum size of one page of changes. A page ends with the change that reaches either limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLimit {
    /// The maximum number of changes.
    pub changes: usize,
    /// The maximum bytes of values, as [`LogChange::weight`] counts them. A page always has at least one change,
    /// however large.
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
    /// Appends a change; returns whether the page is full now.
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
    /// The bytes of keys and values in this part.
    pub bytes: u64,
}

/// What waits for the writes of other stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Attention {
    /// Nothing waits.
    #[default]
    Nobody,
    /// Watchers wait for events.
    Watchers,
    /// Reads wait for a revision that this store does not have yet.
    Reads,
}

/// The remaining work after a slice of compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// More rows remain below the floor.
    More,
    /// No rows remain below the floor.
    Done,
    /// No rows remain below the floor, and the floor is lower than requested: a backup reads the history.
    Held,
}

/// The sizes of an engine's log, and its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackendStats {
    /// The bytes of the log in its storage.
    pub bytes: u64,
    /// How many of these bytes are unused. They will be reused or released.
    pub free_bytes: u64,
    /// The bytes by which the log can still grow, if known.
    pub available_bytes: Option<u64>,
    /// The name of the engine for metrics, such as `sqlite`; empty if it has none.
    pub engine: &'static str,
    /// The connections to a database.
    pub connections: Connections,
    /// By how many milliseconds the clock of the database is ahead of this machine's (negative: behind), if known.
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

/// The largest batch and the largest value that an engine accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of records in one batch.
    pub records: usize,
    /// The maximum bytes of a batch with several records: values, keys and actors.
    pub bytes: usize,
    /// The maximum bytes of one value. A batch of a single record may have a value of this size, whatever `bytes` is.
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

/// Receives a stored record; returns a new value for it, or `None` to keep the value.
pub type ChangeValue<'a> = dyn FnMut(&Record) -> Result<Option<Value>, BoxError> + 'a;

/// Receives the batches that follow a mark; returns a new batch and the mark after which it must be appended.
pub type Decide<'a> = dyn FnMut(Tail) -> Option<(Mark, Batch)> + 'a;

/// The error of an engine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// No space left: the batch was rolled back, reads still work.
    #[error("no space left for the log")]
    Full(#[source] BoxError),
    /// The disk or the database refuses writes, because it is read-only or has an error: nothing was written, reads still
    /// work, and a retry may work.
    #[error("the log cannot be written")]
    ReadOnly(#[source] BoxError),
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
    /// The connection to the log was lost during an append, and the outcome is not known yet. The same batch must be
    /// appended again before any other.
    #[error("the connection to the log was lost during a write")]
    Unknown(#[source] BoxError),
    /// The log is damaged or unusable. After an append it is unknown whether the batch is durable. The store accepts no
    /// more writes.
    #[error("the log failed")]
    Failed(#[source] BoxError),
}

/// An engine that stores the log.
///
/// The example wraps the engine in memory and counts batches:
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
    /// Returns whether other stores may also write to the log. If so, the store uses `tail`, `mark` and `wait` to read
    /// what they wrote.
    fn is_shared(&self) -> bool {
        false
    }

    /// Returns the largest batch that the engine accepts. The store makes no larger batches, and refuses transactions
    /// that do not fit into one batch.
    fn limits(&self) -> Limits {
        Limits::default()
    }

    /// Adds a batch to the end of the log and makes it durable, if the log still ends at `base`. The batch is added
    /// completely or not at all. Called by one thread at a time.
    ///
    /// Returns `Done` if a batch with the same first revision and the same id is already in the log.
    fn append(&self, base: &Mark, batch: &Batch) -> Result<Appended, BackendError>;

    /// Appends while no other store can write. Keeps other writers out, passes the batches that follow `base` to
    /// `decide`, and appends the batch that `decide` returns, at the mark that `decide` returns. Returns `None` if
    /// `decide` returns `None`.
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

    /// Returns the batches that follow `after`, up to a few MiB. Batches are always whole. The engine checks their
    /// digests.
    fn tail(&self, after: &Mark) -> Result<Tail, BackendError> {
        Ok(Tail::empty(*after))
    }

    /// Waits until other stores may have written revisions above `after`, or until `until`. Returns whether they may have. This is
    /// only a hint: it may return too early or too late.
    fn wait(&self, after: u64, until: Instant) -> bool {
        let _ = after;
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
        false
    }

    /// Receives what waits for the writes of other stores. This is only a hint for an engine that polls: it may poll
    /// less often while nothing waits.
    fn attend(&self, attention: Attention) {
        let _ = attention;
    }

    /// Visits the state as of `after` (its records without tombstones), then every later record, all in order of
    /// revision. Does not read records that were replaced up to `after`: a long history must not slow down opening a
    /// store. Returns the mark after the last visited record.
    fn load(&self, after: u64, visit: &mut dyn FnMut(Record)) -> Result<Mark, BackendError>;

    /// Visits the same records as `load`, for backups. The state comes in any order, nothing is kept in memory, and no
    /// writer waits. What is read must not be compacted in the meantime, by any server. The read ends early if `stop` is
    /// requested.
    fn dump(
        &self,
        after: u64,
        visit: &mut dyn FnMut(Record),
        stop: &Stop,
    ) -> Result<Mark, BackendError> {
        let _ = stop;
        self.load(after, visit)
    }

    /// Replaces the content of the log by that of another log, step by step. No other program may use the log in the
    /// meantime.
    fn refill(&self, step: Refill<'_>) -> Result<(), BackendError> {
        let _ = step;
        Err(BackendError::Failed(
            "this engine cannot be filled with the content of another log".into(),
        ))
    }

    /// Returns whether the log is complete. It is incomplete between the first and the last step of
    /// [`Backend::refill`].
    fn is_complete(&self) -> Result<bool, BackendError> {
        Ok(true)
    }

    /// Begins another epoch. The revision counter jumps by 2^20 above `beyond` and all revisions of the log, and the
    /// history begins there. Returns the new end of the log.
    fn next_epoch(&self, beyond: u64) -> Result<Mark, BackendError> {
        let _ = beyond;
        Err(BackendError::Failed("this engine has no epochs".into()))
    }

    /// Returns a page of the changes of `resource` (or of all resources) with `after < revision <= upto`, in order. A
    /// page that is not full is complete up to `upto`.
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

    /// Visits the times at which the history above the floor was written, in order. An engine without this information
    /// visits nothing; the store then treats the history as written when the store was opened.
    fn history(&self, visit: &mut dyn FnMut(Written)) -> Result<(), BackendError> {
        let _ = visit;
        Ok(())
    }

    /// Visits the ends of the batches of the history, in order, beginning with the batch at the floor. An engine
    /// without digests visits nothing.
    fn places(&self, visit: &mut dyn FnMut(Mark)) -> Result<(), BackendError> {
        let _ = visit;
        Ok(())
    }

    /// Returns the settings of the engine that matter for durability. A wrong setting has advice.
    fn settings(&self) -> Result<Vec<Setting>, BackendError> {
        Ok(Vec::new())
    }

    /// Returns the last revision that was written before `time`, by the clock that the times of batches come from; the
    /// floor if all history is later.
    fn revision_before(&self, time: SystemTime) -> Result<u64, BackendError> {
        let mut last = self.compacted();
        self.history(&mut |part| {
            if part.at < time {
                last = last.max(part.last);
            }
        })?;
        Ok(last)
    }

    /// Returns the floor. Reads at the floor are exact and watches after it are complete; below it there are no
    /// guarantees.
    fn compacted(&self) -> u64;

    /// Returns the end of the log. It includes everything that any store acknowledged before this call. Its last
    /// revision may be that of a compacted record; it is never 0 in an open store.
    fn mark(&self) -> Result<Mark, BackendError>;

    /// Replaces stored values in place, history included. Revisions stay the same. Either all values are replaced or
    /// none, and no old value remains in the storage of the log. Commits wait in the meantime. An engine that stores
    /// nothing at rest does nothing.
    fn rewrite(&self, change: &mut ChangeValue<'_>) -> Result<Rewritten, BackendError> {
        let _ = change;
        Ok(Rewritten::default())
    }

    /// Releases unused space of the storage, where the engine does not do it by itself. Returns whether there was
    /// anything to do. Parts of the storage may not answer in the meantime.
    fn release_space(&self) -> Result<bool, BackendError> {
        Ok(false)
    }

    /// Gives back memory that only makes later calls faster, such as cached pages.
    fn release_memory(&self) {}

    /// Returns the size of the log and other numbers for metrics.
    fn stats(&self) -> BackendStats {
        BackendStats::default()
    }

    /// Flushes the log, and releases locks and files. Later calls fail.
    fn close(&self) -> Result<(), BackendError> {
        Ok(())
    }
}

//! What an engine must do to hold the log: a handful of batch methods, all of them blocking.
//!
//! Blocking on purpose. The sequencer is a thread of its own that does nothing but commit, so a local engine is called
//! without any hop between threads, and a lone writer waits for the fsync and little else. A remote engine holds a
//! handle of its runtime and blocks on it. Cold reads run on a small pool of the store's own, never on a caller's task.
//!
//! Engines know bytes and revisions. Order, conflicts, watches and history in memory are above them, once for all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use crate::value::Value;

/// Any error, kept as the cause of ours.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// One line of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Its revision: the primary key of the log.
    pub revision: u64,
    /// The revision this one replaces, 0 if the key did not exist. A tombstone ends the chain: what is created after
    /// it starts again with 0.
    pub prev: u64,
    /// The resource, such as `apps/deployments`.
    pub resource: Arc<str>,
    /// The key within the resource, `namespace/name` or `name`.
    pub key: Arc<str>,
    /// The object without resourceVersion; `None` is a tombstone.
    pub value: Option<Value>,
}

/// A record and the one it replaced.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The change.
    pub record: Record,
    /// What was there before, absent for a creation.
    pub previous: Option<Record>,
}

impl Change {
    /// Bytes of both values, with a fixed share for everything else.
    pub fn weight(&self) -> usize {
        const FIXED: usize = 256;
        let len = |record: &Record| record.value.as_ref().map_or(0, Value::len);
        FIXED + len(&self.record) + self.previous.as_ref().map_or(0, len)
    }
}

/// How much one page of changes may hold: it ends with the change that reaches either bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLimit {
    /// Most changes.
    pub changes: usize,
    /// Bytes of values, as [`Change::weight`] counts them. One change is always given, however large.
    pub bytes: usize,
}

/// Consecutive changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChangePage {
    /// The changes in order.
    pub changes: Vec<Change>,
    /// Their bytes, as [`Change::weight`] counts them.
    pub bytes: usize,
    /// Nothing was left out up to this revision.
    pub complete_to: u64,
}

impl ChangePage {
    /// Appends a change; whether the page is full with it.
    pub fn push(&mut self, change: Change, limit: PageLimit) -> bool {
        self.bytes += change.weight();
        self.complete_to = change.record.revision;
        self.changes.push(change);
        self.changes.len() >= limit.changes || self.bytes >= limit.bytes
    }
}

/// Asks a read to end early, because its result is not needed any more.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// From now on the read should end.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the read should end. Engines ask this every few thousand rows.
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Fails once the read should end.
    pub fn check(&self) -> Result<(), BackendError> {
        match self.requested() {
            true => Err(BackendError::Stopped),
            false => Ok(()),
        }
    }
}

/// What became of one record of a committed batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is durable, under this revision (the proposed one, unless the engine has other writers).
    Written(u64),
    /// Another process changed the key first; the store must follow the log at least up to this revision.
    Lost(u64),
}

/// Who writes to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writers {
    /// This process alone: revisions are assigned by the sequencer.
    One,
    /// Others too: the engine assigns revisions, decides conflicts by `prev`, and tells of all commits in
    /// [`Backend::follow`], ours included.
    Many,
}

/// When a part of the history was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The last revision of the part.
    pub last: u64,
    /// When it was written, by the clock of the machine.
    pub at: SystemTime,
    /// Bytes of its keys and values.
    pub bytes: u64,
}

/// What a slice of compaction left to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// More rows remain below the floor.
    More,
    /// Nothing remains.
    Done,
}

/// What an engine tells of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackendStats {
    /// Bytes the log occupies where it is kept.
    pub bytes: u64,
    /// Bytes of that which hold nothing and will be used again or given back.
    pub free_bytes: u64,
}

/// Why an engine could not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// No room: the batch was rolled back, reads go on.
    #[error("no space left for the log")]
    Full(#[source] BoxError),
    /// Another program holds a lock on the log: nothing was written, and later it may work.
    #[error("the log is locked by another program")]
    Busy(#[source] BoxError),
    /// History up to `floor` is gone.
    #[error("revisions before {floor} have been compacted")]
    Compacted {
        /// The oldest revision at which reads are still exact.
        floor: u64,
    },
    /// The read was asked to [`Stop`].
    #[error("the read was stopped")]
    Stopped,
    /// The log can't be trusted any more, or not be reached; after a commit nobody knows whether it is durable.
    #[error("the log failed")]
    Failed(#[source] BoxError),
}

/// An engine that holds the log.
pub trait Backend: Send + Sync + 'static {
    /// Who else writes.
    fn writers(&self) -> Writers {
        Writers::One
    }

    /// Makes a batch durable, all of it or nothing, and says what became of each record, in order.
    ///
    /// With one writer every outcome is `Written` with the record's own revision. Called by one thread at a time.
    fn commit(&self, batch: &[Record]) -> Result<Vec<Outcome>, BackendError>;

    /// Visits the state as of `after` (its records without tombstones), then every record after it, all in order of
    /// revision. What was replaced up to `after` is not read: a long history must not make a store slow to open.
    fn load(&self, after: u64, visit: &mut dyn FnMut(Record)) -> Result<(), BackendError>;

    /// A page of the changes of a resource (or of all) with `after < revision <= upto`, in order. A page that is not
    /// full is complete up to `upto`.
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

    /// Visits the records that made up a resource at `revision`, in any order, without tombstones.
    ///
    /// Fails with `Compacted` if the floor is above `revision` when the read ends.
    fn read_at(
        &self,
        resource: &str,
        revision: u64,
        visit: &mut dyn FnMut(Record),
        stop: &Stop,
    ) -> Result<(), BackendError>;

    /// Raises the floor to `upto` and forgets up to about `rows` records nobody needs above it.
    ///
    /// The floor must be durable before the first row goes; what a crash leaves behind is swept by the next call.
    fn compact(&self, upto: u64, rows: usize) -> Result<Sweep, BackendError>;

    /// Visits when the history above the floor was written, in order. An engine that does not know leaves it out: then
    /// the history counts as written when the store was opened.
    fn history(&self, visit: &mut dyn FnMut(Written)) -> Result<(), BackendError> {
        let _ = visit;
        Ok(())
    }

    /// The floor: reads at it are exact and watches after it complete, below it nothing is promised.
    fn compacted(&self) -> u64;

    /// The last revision ever given out, which may be that of a record already compacted; never 0 once opened.
    fn last_revision(&self) -> Result<u64, BackendError>;

    /// Delivers all commits after `after`, in order, until `deliver` returns false. Only called if others write too.
    fn follow(
        &self,
        after: u64,
        deliver: &mut dyn FnMut(Vec<Record>) -> bool,
    ) -> Result<(), BackendError> {
        let _ = (after, deliver);
        Ok(())
    }

    /// Size of the log.
    fn stats(&self) -> BackendStats {
        BackendStats::default()
    }

    /// Ends all use: flushes, releases locks and files. Later calls fail.
    fn close(&self) -> Result<(), BackendError> {
        Ok(())
    }
}

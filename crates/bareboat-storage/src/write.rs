//! Writes, their results and errors.

use std::sync::Arc;

use bytes::Bytes;

use crate::entry::Entry;
use crate::layout::LayoutError;
use crate::others::Dependency;
use crate::resource::Resource;

/// A write to one key of a resource.
#[derive(Clone)]
pub struct Write {
    /// The resource that the key belongs to.
    pub resource: Arc<Resource>,
    /// The key, `namespace/name` or `name`.
    pub key: Arc<str>,
    /// The state that the write expects to find.
    pub expect: Expect,
    /// The change: store a value, or delete the object.
    pub change: WriteOp,
    /// Who writes, as JSON. The log stores it with the record.
    pub actor: Option<Arc<str>>,
    /// Other objects that the write depends on. If another store changed one of them, the write fails.
    pub depends_on: Vec<Dependency>,
    /// The object that the written one is part of. If it is gone or being deleted, the write fails.
    pub part_of: Option<Whole>,
}

/// An object that others are part of, such as the definition of their kind.
#[derive(Clone)]
pub struct Whole {
    /// Its resource.
    pub resource: Arc<Resource>,
    /// Its key.
    pub key: Arc<str>,
}

opaque_debug!(Whole);

opaque_debug!(Write);

/// The expected current state of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// No object: a creation.
    Absent,
    /// An object of exactly this revision.
    Revision(u64),
    /// Any object.
    Present,
    /// Any state: an object, or no object.
    Any,
}

/// The change of a write.
#[derive(Clone, Debug)]
pub enum WriteOp {
    /// Stores an object.
    Put {
        /// The object without resourceVersion, in the form [`Layout::locate`](crate::Layout::locate) reads.
        value: Bytes,
        /// Opaque hash of the schema under which the value was normalised; 0 if unknown.
        shape: u64,
    },
    /// Removes the object.
    Delete,
}

impl Write {
    /// Returns a write that creates an object.
    pub fn create(resource: &Arc<Resource>, key: impl Into<Arc<str>>, value: Bytes) -> Self {
        Self {
            resource: resource.clone(),
            key: key.into(),
            expect: Expect::Absent,
            change: WriteOp::Put { value, shape: 0 },
            actor: None,
            depends_on: Vec::new(),
            part_of: None,
        }
    }

    /// Returns a write that replaces exactly `found`.
    pub fn replace(resource: &Arc<Resource>, found: &Entry, value: Bytes) -> Self {
        Self {
            resource: resource.clone(),
            key: found.shared_key().clone(),
            expect: Expect::Revision(found.revision()),
            change: WriteOp::Put { value, shape: 0 },
            actor: None,
            depends_on: Vec::new(),
            part_of: None,
        }
    }

    /// Returns a write that removes exactly `found`.
    pub fn delete(resource: &Arc<Resource>, found: &Entry) -> Self {
        Self {
            resource: resource.clone(),
            key: found.shared_key().clone(),
            expect: Expect::Revision(found.revision()),
            change: WriteOp::Delete,
            actor: None,
            depends_on: Vec::new(),
            part_of: None,
        }
    }

    /// Changes the expected state.
    pub fn expecting(self, expect: Expect) -> Self {
        Self { expect, ..self }
    }

    /// Sets who writes, as JSON.
    pub fn by(mut self, actor: Arc<str>) -> Self {
        self.actor = Some(actor);
        self
    }

    /// Adds other objects that the write depends on.
    pub fn depending_on(mut self, objects: impl IntoIterator<Item = Dependency>) -> Self {
        self.depends_on.extend(objects);
        self
    }

    /// Sets the object that the written one is part of.
    pub fn being_part_of(mut self, whole: Whole) -> Self {
        self.part_of = Some(whole);
        self
    }

    /// Sets the schema hash of the value.
    pub fn shaped(mut self, hash: u64) -> Self {
        if let WriteOp::Put { shape, .. } = &mut self.change {
            *shape = hash;
        }
        self
    }
}

/// A write that is durable and visible.
#[derive(Clone, Debug)]
pub struct Committed {
    /// The revision of the write, also for a deletion.
    pub revision: u64,
    /// The new entry; for a deletion the last entry.
    pub entry: Arc<Entry>,
    /// The previous entry, absent for a creation.
    pub previous: Option<Arc<Entry>>,
}

/// The error of a write.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// The key already exists.
    #[error("the key exists")]
    AlreadyExists {
        /// The existing entry.
        found: Arc<Entry>,
    },
    /// The current revision is not the expected one.
    #[error("another revision was found")]
    Conflict {
        /// The current entry; `None` if the object was deleted.
        found: Option<Arc<Entry>>,
    },
    /// There is no object under the key.
    #[error("nothing is stored under the key")]
    NotFound,
    /// Another store changed an object that the write depends on; nothing was written.
    #[error("another server changed what the write depends on")]
    Outdated,
    /// The object that the written one is part of is gone, or being deleted; nothing was written.
    #[error("what the object is part of is being deleted")]
    Ending,
    /// The value is longer than allowed.
    #[error("value of {len} bytes is longer than {max}")]
    TooLarge {
        /// The length of the value in bytes.
        len: usize,
        /// The maximum length of a value in bytes.
        max: usize,
    },
    /// The transaction has more writes than the engine accepts at once.
    #[error("{writes} writes are more than the {max} that fit into one transaction of this store")]
    TooMany {
        /// The number of writes.
        writes: usize,
        /// The maximum number of writes.
        max: usize,
    },
    /// The value does not have the form that the store needs.
    #[error("the value cannot be stored")]
    Malformed(#[source] LayoutError),
    /// There is no space left; reads still work.
    #[error("no space left for the log")]
    Full,
    /// The disk or the database refuses writes; nothing was written, and reads still work.
    #[error("the log cannot be written")]
    ReadOnly,
    /// Another program holds a lock on the log; nothing was written.
    #[error("the log is locked by another program")]
    Busy,
    /// The log cannot be reached; nothing was written.
    #[error("the log cannot be reached")]
    Unreachable,
    /// The log failed or was lost during this write. Whether the write is durable will be known when the log can be
    /// used again.
    #[error("the log failed, and the outcome of the write is not known: {0}")]
    Unknown(Arc<str>),
    /// The log had failed before; nothing was written, and the process should restart.
    #[error("the store accepts no more writes: {0}")]
    Poisoned(Arc<str>),
    /// The write names a resource of another store.
    #[error("the resource belongs to another store")]
    Foreign,
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

/// The error of a transaction.
#[derive(Clone, Debug, thiserror::Error)]
#[error("write {index} of a transaction failed")]
pub struct TransactionError {
    /// The index of the failed write in the transaction, starting with 0.
    pub index: usize,
    /// The error of that write.
    #[source]
    pub error: CommitError,
}

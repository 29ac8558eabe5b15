//! What callers ask of the log and what they are told.

use std::sync::Arc;

use bytes::Bytes;

use crate::entry::Entry;
use crate::layout::LayoutError;
use crate::resource::Resource;

/// One write.
#[derive(Clone)]
pub struct Write {
    /// Where.
    pub resource: Arc<Resource>,
    /// The key, `namespace/name` or `name`.
    pub key: Arc<str>,
    /// What must be there for the write to happen.
    pub expect: Expect,
    /// What shall be there.
    pub change: Change,
}

/// What a write expects to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Nothing: a creation.
    Absent,
    /// This very revision.
    Revision(u64),
    /// Something.
    Present,
    /// Something or nothing.
    Any,
}

/// What a write does.
#[derive(Clone, Debug)]
pub enum Change {
    /// Stores an object.
    Put {
        /// The object without resourceVersion, in the form [`Layout::locate`](crate::Layout::locate) reads.
        value: Bytes,
        /// Opaque hash of the schema it was shaped under; 0 if that says nothing.
        shape: u64,
    },
    /// Removes the object.
    Delete,
}

impl Write {
    /// A write that expects nothing to be there.
    pub fn create(resource: &Arc<Resource>, key: impl Into<Arc<str>>, value: Bytes) -> Self {
        Self {
            resource: resource.clone(),
            key: key.into(),
            expect: Expect::Absent,
            change: Change::Put { value, shape: 0 },
        }
    }

    /// A write that replaces exactly `found`.
    pub fn replace(resource: &Arc<Resource>, found: &Entry, value: Bytes) -> Self {
        Self {
            resource: resource.clone(),
            key: found.shared_key().clone(),
            expect: Expect::Revision(found.revision()),
            change: Change::Put { value, shape: 0 },
        }
    }

    /// A write that removes exactly `found`.
    pub fn delete(resource: &Arc<Resource>, found: &Entry) -> Self {
        Self {
            resource: resource.clone(),
            key: found.shared_key().clone(),
            expect: Expect::Revision(found.revision()),
            change: Change::Delete,
        }
    }

    /// The same, expecting something else.
    pub fn expecting(self, expect: Expect) -> Self {
        Self { expect, ..self }
    }

    /// The same, remembering the schema hash the value was shaped under.
    pub fn shaped(mut self, hash: u64) -> Self {
        if let Change::Put { shape, .. } = &mut self.change {
            *shape = hash;
        }
        self
    }
}

/// A write that is durable and visible.
#[derive(Clone, Debug)]
pub struct Committed {
    /// Its revision; for a deletion that of the deletion.
    pub revision: u64,
    /// The new entry; for a deletion the last one.
    pub entry: Arc<Entry>,
    /// The entry before, absent for a creation.
    pub previous: Option<Arc<Entry>>,
}

/// Why a write did not happen.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// The key is taken.
    #[error("the key exists")]
    AlreadyExists {
        /// What holds it.
        found: Arc<Entry>,
    },
    /// Something else than the expected revision was found.
    #[error("another revision was found")]
    Conflict {
        /// What was found, `None` if it is gone.
        found: Option<Arc<Entry>>,
    },
    /// There is nothing under the key.
    #[error("nothing is stored under the key")]
    NotFound,
    /// The value is longer than allowed.
    #[error("value of {len} bytes is longer than {max}")]
    TooLarge {
        /// Its length.
        len: usize,
        /// The longest allowed.
        max: usize,
    },
    /// The value does not have the form the store needs.
    #[error("the value can't be stored")]
    Malformed(#[source] LayoutError),
    /// There is no room for it; reads go on.
    #[error("no space left for the log")]
    Full,
    /// Another program holds a lock on the log; nothing was written.
    #[error("the log is locked by another program")]
    Busy,
    /// The log failed while this was written: whether it is durable is known after the restart.
    #[error("the log failed, and the outcome of the write is not known: {0}")]
    Unknown(Arc<str>),
    /// The log had failed before; nothing was written, and the process should restart.
    #[error("the store takes no more writes: {0}")]
    Poisoned(Arc<str>),
    /// The write names a resource of another store.
    #[error("the resource belongs to another store")]
    Foreign,
    /// The backend does not offer transactions of several writes.
    #[error("the backend has no transactions")]
    Unsupported,
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

/// Why none of several writes happened.
#[derive(Clone, Debug, thiserror::Error)]
#[error("write {index} of a transaction failed")]
pub struct TransactionError {
    /// Which of them failed.
    pub index: usize,
    /// Why.
    #[source]
    pub error: CommitError,
}

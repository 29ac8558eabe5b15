//! The store, and the interface of storage engines.

pub use bareboat_storage::{
    Appended, Backend, BackendError, BackendStats, Batch, BoxError, Chain, ChangePage, ChangeValue,
    CommitError, Committed, Decide, Digest, Entry, Event, EventKind, Expect, LogChange, Mark,
    MemoryBackend, Observer, OpenError, PageLimit, Record, Refill, Resource, Rewritten, Snapshot,
    Stop, Store, StoreOptions, StoreStats, Sweep, Tail, Value as StoredValue, Write, WriteOp,
    Written, backup, examine, faults,
};

//! What persistence means: the log, the sequencer, backends, the watch cache.
//!
//! Bytes and revisions. Users, schemas and HTTP are unknown here; what an object means begins above.
//!
//! ```text
//! Write ─► queue ─► sequencer: decide ► number ► Backend::commit (fsync) ► maps + rings ► visible ► answers ► wake
//!                                                                            │
//!                         Resource::{get, snapshot, snapshot_at, watch} ◄────┤
//!                         Store::feed, Observer  ◄───────────────────────────┘
//! ```
//!
//! * [`Store::open`] on any [`Backend`] ([`MemoryBackend`] here; engines live in their own crates).
//! * [`Store::resource`] gives the [`Resource`] of a name such as `apps/deployments`: all reads come from its memory.
//! * [`Store::commit`] takes a [`Write`]: what must be found ([`Expect`]) and what shall be there ([`Change`]).
//! * An [`Entry`] is an object at a revision; its wire bytes are built once, when the revision is known.
//! * [`Resource::watch`] gives a [`Watcher`], polled for batches of [`Event`]s.
//! * [`Store::feed`] gives all events of all resources; an [`Observer`] is told inside the commit.
//!
//! Values are stored without resourceVersion and begin as [`Layout`] says.

mod backend;
mod cold;
pub mod conformance;
mod core;
mod entry;
mod event;
mod facets;
pub mod faults;
mod layout;
mod memory;
mod old;
mod options;
mod past;
mod pins;
mod queue;
mod recent;
mod resource;
mod retention;
mod ring;
mod sequencer;
mod slot;
mod snapshot;
mod store;
mod value;
mod variants;
mod watch;
mod write;

pub use backend::{
    Backend, BackendError, BackendStats, BoxError, Change as LogChange, ChangePage, Outcome,
    PageLimit, Record, Stop, Sweep, Writers, Written,
};
pub use entry::Entry;
pub use event::{Event, EventKind};
pub use facets::{Facets, Owner};
pub use layout::{Layout, LayoutError};
pub use memory::MemoryBackend;
pub use options::StoreOptions;
pub use recent::{Feed, FeedError};
pub use resource::{Observer, Resource, ResourceStats};
pub use slot::LabelSignature;
pub use snapshot::{Snapshot, SnapshotError};
pub use store::{OpenError, Store, StoreStats, WeakStore};
pub use value::Value;
pub use variants::{VariantKey, Variants};
pub use watch::{Scope, WatchError, WatchSpec, Watcher};
pub use write::{Change, CommitError, Committed, Expect, TransactionError, Write};

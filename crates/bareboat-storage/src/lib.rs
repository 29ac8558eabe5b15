//! Persistence: the log, the sequencer, backends, the watch cache.
//!
//! This crate handles bytes and revisions. It does not know users, schemas or HTTP.
//!
//! ```text
//! Write ─► queue ─► sequencer: decide ► number ► Backend::append (fsync) ► maps + rings ► visible ► answers ► wake
//!                                                                            │
//!                         Resource::{get, snapshot, snapshot_at, watch} ◄────┤
//!                         Store::feed, Observer  ◄───────────────────────────┘
//! ```
//!
//! * [`Store::open`] works on any [`Backend`] (this crate has [`MemoryBackend`]; other engines are in their own
//!   crates).
//! * [`Store::resource`] returns the [`Resource`] of a name such as `apps/deployments`: all reads come from its memory.
//! * [`Store::commit`] takes a [`Write`]: the expected state ([`Expect`]) and the change ([`WriteOp`]).
//! * An [`Entry`] is an object at a revision; its wire bytes are built once, when the revision is known.
//! * [`Resource::watch`] returns a [`Watcher`], polled for batches of [`Event`]s.
//! * [`Store::feed`] returns all events of all resources; an [`Observer`] is called inside the commit.
//!
//! ```
//! use bareboat_storage::{MemoryBackend, Store, StoreOptions, Write};
//! use std::sync::Arc;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let backend = Arc::new(MemoryBackend::starting_at(1));
//! let store = Store::open(backend, StoreOptions::default())?;
//! let boats = store.resource("sea.example.com/boats");
//! let value = r#"{"apiVersion":"sea.example.com/v1","kind":"Boat","metadata":{"name":"argo"}}"#;
//! let created = store.commit(Write::create(&boats, "argo", value.into())).await?;
//! // The wire bytes have the revision as resourceVersion.
//! let wire = std::str::from_utf8(created.entry.json())?;
//! assert!(wire.contains(&format!(r#""resourceVersion":"{}""#, created.revision)));
//!
//! store.commit(Write::delete(&boats, &created.entry)).await?;
//! assert!(boats.get("argo").is_none());
//! // The entry is gone, so a second deletion of it conflicts.
//! assert!(store.commit(Write::delete(&boats, &created.entry)).await.is_err());
//! # Ok(()) }
//! ```
//!
//! Values are stored without resourceVersion and begin as described in [`Layout`].

// Documentation names the features that items need, where it is built with a nightly compiler, as docs.rs does.
#![cfg_attr(docsrs, feature(doc_cfg))]

/// Implements `Debug` for types. The output is the name of the type without its content.
macro_rules! opaque_debug {
    ($($type:ty),* $(,)?) => {$(
        impl ::std::fmt::Debug for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_struct(stringify!($type)).finish_non_exhaustive()
            }
        }
    )*};
}

mod activity;
mod backend;
pub mod backup;
mod barrier;
mod batch;
mod cold;
mod commit_times;
#[cfg(feature = "conformance")]
pub mod conformance;
mod connections;
mod core;
mod delegate;
mod entry;
mod event;
pub mod examine;
mod facets;
pub mod faults;
mod layout;
mod memory;
mod old;
mod options;
mod others;
mod past;
mod pins;
mod queue;
mod recent;
mod refill;
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

pub use activity::{AppendResult, Durations, Resolution, StoreActivity};
pub use backend::{
    Attention, Backend, BackendError, BackendStats, BoxError, ChangePage, ChangeValue, Decide,
    Limits, LogChange, PageLimit, Record, Rewritten, Stop, Sweep, Written,
};
pub use batch::{Appended, Batch, Chain, Digest, Mark, Tail};
pub use commit_times::CommitTimes;
pub use connections::{ConnectionCounter, Connections};
pub use entry::Entry;
pub use event::{Event, EventKind};
pub use facets::{Facets, Owner};
pub use layout::{Layout, LayoutError};
pub use memory::MemoryBackend;
pub use options::StoreOptions;
pub use others::Dependency;
pub use recent::{Feed, FeedError};
pub use refill::Refill;
pub use resource::{Observer, Resource, ResourceStats};
pub use slot::LabelSignature;
pub use snapshot::{Snapshot, SnapshotError};
pub use store::{OpenError, Store, StoreStats, WeakStore};
pub use value::Value;
pub use variants::{VariantKey, Variants};
pub use watch::{Scope, WatchError, WatchSpec, Watcher};
pub use write::{CommitError, Committed, Expect, TransactionError, Whole, Write, WriteOp};

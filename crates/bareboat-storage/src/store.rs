//! The store: opened on a backend, it returns resources, commits writes and delivers events.
//!
//! `sequencer` processes writes; `resource` and `watch` deliver events. This module is the public
//! interface.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::time::Duration;

use ahash::AHashMap;
use parking_lot::{Mutex, RwLock};
use tokio::sync::oneshot;

use crate::activity::StoreActivity;
use crate::backend::{Backend, BackendStats};
use crate::barrier::Barrier;
use crate::core::Core;
use crate::options::StoreOptions;
use crate::queue::{Closed, Queue};
use crate::recent::{Feed, FeedError, Recent};
use crate::resource::{Observer, Resource};
use crate::sequencer::{Answer, Command, Prepared, PreparedChange, Sequencer, Unit};
use crate::variants::Variants;
use crate::write::{CommitError, Committed, TransactionError, Write, WriteOp};
use crate::{Layout, LayoutError};

mod follow;
pub(crate) mod open;

pub use open::OpenError;

/// A log with its watch caches. Clones share the store, which closes when the last clone is dropped.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
    // Held for its Drop. The sequencer keeps `shared` alive, so this reference counts the handles outside the
    // sequencer.
    _door: Arc<Door>,
}

opaque_debug!(Store);

/// A reference that does not keep the store open, for objects that the store itself holds, such as
/// its [`Observer`]s.
#[derive(Clone)]
pub struct WeakStore {
    shared: Weak<Shared>,
    door: Weak<Door>,
}

opaque_debug!(WeakStore);

impl WeakStore {
    /// Returns the store, if it is still open.
    pub fn upgrade(&self) -> Option<Store> {
        Some(Store {
            shared: self.shared.upgrade()?,
            _door: self.door.upgrade()?,
        })
    }
}

struct Door(Arc<Shared>);

impl Drop for Door {
    fn drop(&mut self) {
        self.0.queue.close();
    }
}

/// The state shared by store, sequencer and feeds.
pub(crate) struct Shared {
    pub(crate) core: Arc<Core>,
    pub(crate) queue: Queue<Command>,
    pub(crate) barrier: Barrier,
    /// Whether a `CatchUp` of waiting reads is in the queue and has not begun.
    pub(crate) asked: AtomicBool,
    /// The highest end of the log that reads wait for.
    pub(crate) wanted: AtomicU64,
    pub(crate) recent: Mutex<Recent>,
    resources: RwLock<AHashMap<Arc<str>, Arc<Resource>>>,
    /// The number of resources ever created. Numbers of resources are not reused.
    numbered: AtomicU32,
}

/// The sizes and the activity of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// The revision up to which everything is visible.
    pub visible: u64,
    /// The compaction floor.
    pub floor: u64,
    /// The number of writes in the queue.
    pub queued: usize,
    /// Bytes of other encodings of entries.
    pub variant_bytes: usize,
    /// Bytes that only pinned snapshots keep alive.
    pub pinned_bytes: usize,
    /// Bytes of entries read from the log that are in use.
    pub past_bytes: usize,
    /// How long ago the store last proved that it knows all writes of other stores; zero if there are no other stores.
    pub unproven_for: Duration,
    /// What the store did since it was opened.
    pub activity: StoreActivity,
    /// The backend's sizes.
    pub backend: BackendStats,
}

impl Shared {
    pub(crate) fn resource(&self, name: &str) -> Arc<Resource> {
        if let Some(resource) = self.resources.read().get(name) {
            return resource.clone();
        }
        let mut resources = self.resources.write();
        let name: Arc<str> = name.into();
        resources
            .entry(name.clone())
            .or_insert_with(|| {
                let id = self.numbered.fetch_add(1, Ordering::Relaxed);
                Arc::new(Resource::new(name, id, self.core.clone()))
            })
            .clone()
    }

    /// Removes resources that have no entries, no history and no users, such as those of deleted
    /// definitions.
    pub(crate) fn drop_unused_resources(&self) {
        let floor = self.core.floor();
        let mut resources = self.resources.write();
        // Such a resource has no other holder, and none can appear under this lock.
        resources.retain(|_, resource| Arc::strong_count(resource) > 1 || resource.is_used(floor));
        if resources.capacity() > 4 * resources.len() + 64 {
            resources.shrink_to_fit();
        }
    }

    pub(crate) fn resources(&self) -> Vec<Arc<Resource>> {
        self.resources.read().values().cloned().collect()
    }

    /// Ends all waits and collects the wakers.
    pub(crate) fn end(&self, wake: &mut Vec<Waker>) {
        self.core.close();
        self.barrier.close();
        for resource in self.resources() {
            resource.wake_all(wake);
        }
        self.recent.lock().wake_all(wake);
    }
}

impl Store {
    /// Opens a store on a backend: loads the live state and starts the sequencer. Blocks while it
    /// loads.
    pub fn open(backend: Arc<dyn Backend>, options: StoreOptions) -> Result<Self, OpenError> {
        let shared = open::open(backend, options)?;
        Ok(Self {
            _door: Arc::new(Door(shared.clone())),
            shared,
        })
    }

    /// Returns a reference that does not keep the store open.
    pub fn downgrade(&self) -> WeakStore {
        WeakStore {
            shared: Arc::downgrade(&self.shared),
            door: Arc::downgrade(&self._door),
        }
    }

    /// Returns the resource of that name, and creates it if necessary.
    pub fn resource(&self, name: &str) -> Arc<Resource> {
        self.shared.resource(name)
    }

    /// Returns all resources, in no order.
    pub fn resources(&self) -> Vec<Arc<Resource>> {
        self.shared.resources()
    }

    /// Makes a write durable and visible. A queued write is committed even if this future is
    /// dropped.
    pub async fn commit(&self, write: Write) -> Result<Committed, CommitError> {
        let (to, answer) = oneshot::channel();
        let unit = Unit {
            writes: smallvec::smallvec![self.prepare(write)?],
            answer: Answer::One(to),
        };
        self.enqueue(unit).await?;
        answer.await.unwrap_or_else(|_| Err(self.unanswered()))
    }

    /// Makes several writes durable together, or none of them.
    ///
    /// A reader may see the writes of one resource shortly before those of another.
    pub async fn commit_many(
        &self,
        writes: Vec<Write>,
    ) -> Result<Vec<Committed>, TransactionError> {
        let at = |index| move |error| TransactionError { index, error };
        let prepared = writes
            .into_iter()
            .enumerate()
            .map(|(index, write)| self.prepare(write).map_err(at(index)))
            .collect::<Result<_, _>>()?;
        let (to, answer) = oneshot::channel();
        let unit = Unit {
            writes: prepared,
            answer: Answer::Many(to),
        };
        self.measure(&unit).map_err(at(0))?;
        self.enqueue(unit).await.map_err(at(0))?;
        answer
            .await
            .unwrap_or_else(|_| Err(at(0)(self.unanswered())))
    }

    /// Checks a write against the present state without committing it: a dry run.
    pub fn rehearse(&self, write: Write) -> Result<(), CommitError> {
        let write = self.prepare(write)?;
        let found = write.resource.get(&write.key);
        let whole = write.part_of.as_ref();
        let whole = whole.and_then(|whole| whole.resource.get(&whole.key));
        write.judge(found.as_ref(), whole.as_ref())
    }

    /// Returns the revision up to which everything is durable and visible to readers and watchers.
    pub fn visible(&self) -> u64 {
        self.shared.core.visible()
    }

    /// Returns the maximum length of a value in bytes.
    pub fn max_value_bytes(&self) -> usize {
        self.shared.core.options.max_value_bytes
    }

    /// Returns the compaction floor: older history is deleted.
    pub fn floor(&self) -> u64 {
        self.shared.core.floor()
    }

    /// Waits until `revision` is visible; returns false after `timeout`.
    pub async fn wait_for(&self, revision: u64, timeout: Duration) -> bool {
        self.shared.core.wait_for(revision, timeout).await
    }

    /// Returns a feed of all events of all resources: after revision `after` if memory still has these events, or from
    /// now on if `after` is `None`.
    pub fn feed(&self, after: Option<u64>) -> Result<Feed, FeedError> {
        Feed::start(self.shared.clone(), after)
    }

    /// Starts a view of a resource that is updated inside each commit.
    pub fn observe(&self, resource: &str, observer: Arc<dyn Observer>) {
        self.resource(resource).observe(observer);
    }

    /// Returns the cache of other encodings.
    pub fn variants(&self) -> &Arc<Variants> {
        &self.shared.core.variants
    }

    /// Raises the floor to `upto` (at most the last revision) and deletes older history.
    pub async fn compact(&self, upto: u64) -> Result<(), CommitError> {
        let (to, done) = oneshot::channel();
        let command = Command::Compact(upto, to);
        let queued = self.shared.queue.push_now(command);
        queued.map_err(|Closed| self.gone())?;
        done.await.map_err(|_| self.gone())
    }

    /// Returns whether a damaged object was found (see
    /// [`Entry::is_damaged`](crate::Entry::is_damaged)).
    pub fn has_damaged(&self) -> bool {
        self.shared.core.damaged.load(Ordering::Relaxed)
    }

    /// Returns the reason why the store accepts no more writes, if so.
    pub fn poison(&self) -> Option<Arc<str>> {
        self.shared.core.poisoned()
    }

    /// Waits until the store is poisoned and returns the reason: the process should exit and
    /// recover from the log.
    pub async fn poisoned(&self) -> Arc<str> {
        let mut watch = self.shared.core.poison_watch();
        let reason = watch.wait_for(Option::is_some).await;
        match reason {
            Ok(reason) => reason.clone().unwrap_or_default(),
            Err(_) => std::future::pending().await,
        }
    }

    /// Runs the queued commands, closes the backend and ends all watches.
    pub async fn close(&self) {
        let (to, done) = oneshot::channel();
        if self.shared.queue.push_now(Command::Close(to)).is_ok() {
            // An error means that the thread has ended, so the store is closed.
            let _ = done.await;
        }
    }

    /// Makes the engine give back memory that only makes later calls faster. May wait for a running commit.
    pub fn release_memory(&self) {
        self.shared.core.backend.release_memory();
    }

    /// Returns sizes and counters for metrics.
    pub fn stats(&self) -> StoreStats {
        let core = &self.shared.core;
        StoreStats {
            visible: core.visible(),
            floor: core.floor(),
            queued: self.shared.queue.len(),
            variant_bytes: core.variants.held(),
            pinned_bytes: core.pins.lock().bytes(),
            past_bytes: core.old.held(),
            unproven_for: core.unproven_for(),
            activity: core.activity.read(core.visible(), core.reloads()),
            backend: core.backend.stats(),
        }
    }

    fn prepare(&self, write: Write) -> Result<Prepared, CommitError> {
        if !Arc::ptr_eq(&write.resource.core, &self.shared.core) {
            return Err(CommitError::Foreign);
        }
        let change = match write.change {
            WriteOp::Delete => PreparedChange::Delete,
            WriteOp::Put { value, shape } => {
                let max = self.shared.core.options.max_value_bytes;
                if value.len() > max {
                    let len = value.len();
                    return Err(CommitError::TooLarge { len, max });
                }
                let malformed = |error: LayoutError| CommitError::Malformed(error);
                PreparedChange::Put {
                    layout: Layout::locate(&value).map_err(malformed)?,
                    value,
                    shape,
                }
            }
        };
        Ok(Prepared {
            resource: write.resource,
            key: write.key,
            expect: write.expect,
            change,
            actor: write.actor,
            depends_on: write.depends_on,
            part_of: write.part_of,
        })
    }

    /// Fails if a transaction does not fit into a batch of the engine.
    fn measure(&self, unit: &Unit) -> Result<(), CommitError> {
        let limits = self.shared.core.limits;
        let (writes, len) = (unit.writes.len(), unit.bytes());
        if writes > limits.records {
            let max = limits.records;
            return Err(CommitError::TooMany { writes, max });
        }
        if writes > 1 && len > limits.bytes {
            let max = limits.bytes;
            return Err(CommitError::TooLarge { len, max });
        }
        Ok(())
    }

    async fn enqueue(&self, unit: Unit) -> Result<(), CommitError> {
        let weight = unit.weight();
        let queued = self.shared.queue.push(Command::Commit(unit), weight).await;
        queued.map_err(|Closed| self.gone())
    }

    /// Returns the error for a write that the sequencer did not answer: its outcome is unknown. A store that closes
    /// answers all writes first, so the sequencer must have failed.
    fn unanswered(&self) -> CommitError {
        let unknown = || "the sequencer ended before it answered".into();
        CommitError::Unknown(self.poison().unwrap_or_else(unknown))
    }

    fn gone(&self) -> CommitError {
        match self.poison() {
            Some(reason) => CommitError::Poisoned(reason),
            None => CommitError::Closed,
        }
    }
}

/// Runs the sequencer on the current thread. When it ends, all waiting callers are released.
fn run(sequencer: Sequencer, shared: Arc<Shared>) {
    let run = std::panic::AssertUnwindSafe(|| sequencer.run());
    if std::panic::catch_unwind(run).is_err() {
        shared.core.poison("the sequencer panicked".into());
        shared.queue.close();
        let mut wake = Vec::new();
        shared.end(&mut wake);
        wake.into_iter().for_each(Waker::wake);
    }
}

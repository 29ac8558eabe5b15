//! The store: opened on a backend, it gives out resources, takes writes and tells of everything.
//!
//! The way of a write is in `sequencer`, that of an event in `resource` and `watch`; this room only holds the doors.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::time::Duration;

use ahash::AHashMap;
use parking_lot::{Mutex, RwLock};
use tokio::sync::oneshot;

use crate::backend::{Backend, BackendError, BackendStats, Writers};
use crate::core::Core;
use crate::options::StoreOptions;
use crate::queue::{Closed, Queue};
use crate::recent::{Feed, FeedError, Recent};
use crate::resource::{Observer, Resource};
use crate::sequencer::{Answer, Command, Prepared, PreparedChange, Sequencer, Unit, describe};
use crate::variants::Variants;
use crate::write::{Change, CommitError, Committed, TransactionError, Write};
use crate::{Layout, LayoutError};

mod open;

pub use open::OpenError;

/// A log with its watch caches. Clones share it; when the last is dropped the store closes.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
    // Held for its Drop: the sequencer keeps `shared` alive, so the doors must know when nobody is outside.
    _door: Arc<Door>,
}

/// A store that is not held open, for those whom the store itself holds, such as its [`Observer`]s.
#[derive(Clone)]
pub struct WeakStore {
    shared: Weak<Shared>,
    door: Weak<Door>,
}

impl WeakStore {
    /// The store, if somebody else holds it open.
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

/// What store, sequencer and feeds share.
pub(crate) struct Shared {
    pub(crate) core: Arc<Core>,
    pub(crate) queue: Queue<Command>,
    pub(crate) recent: Mutex<Recent>,
    resources: RwLock<AHashMap<Arc<str>, Arc<Resource>>>,
    /// How many resources there ever were: their numbers are not used again.
    numbered: AtomicU32,
}

/// Sizes of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// The revision up to which everything is visible.
    pub visible: u64,
    /// The compaction floor.
    pub floor: u64,
    /// Writes that wait for the sequencer.
    pub queued: usize,
    /// Bytes of other encodings of entries.
    pub variant_bytes: usize,
    /// Bytes that only pinned snapshots keep alive.
    pub pinned_bytes: usize,
    /// Bytes of entries read from the log that are in use.
    pub past_bytes: usize,
    /// What the backend tells of itself.
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

    /// Forgets resources that hold nothing, have no history left, and are used by no one, such as those of definitions
    /// that were deleted.
    pub(crate) fn drop_unused_resources(&self) {
        let floor = self.core.floor();
        let mut resources = self.resources.write();
        // It has no other holder, and under this lock none can appear.
        resources.retain(|_, resource| Arc::strong_count(resource) > 1 || resource.is_used(floor));
        if resources.capacity() > 4 * resources.len() + 64 {
            resources.shrink_to_fit();
        }
    }

    pub(crate) fn resources(&self) -> Vec<Arc<Resource>> {
        self.resources.read().values().cloned().collect()
    }

    /// Ends every wait; collects whom to wake.
    pub(crate) fn end(&self, wake: &mut Vec<Waker>) {
        self.core.close();
        for resource in self.resources() {
            resource.wake_all(wake);
        }
        self.recent.lock().wake_all(wake);
    }
}

impl Store {
    /// Opens a store on a backend: loads the live state and starts the sequencer. Blocks while it loads.
    pub fn open(backend: Arc<dyn Backend>, options: StoreOptions) -> Result<Self, OpenError> {
        let shared = open::open(backend, options)?;
        Ok(Self {
            _door: Arc::new(Door(shared.clone())),
            shared,
        })
    }

    /// The same store, not held open.
    pub fn downgrade(&self) -> WeakStore {
        WeakStore {
            shared: Arc::downgrade(&self.shared),
            door: Arc::downgrade(&self._door),
        }
    }

    /// The resource of that name, created if it is new.
    pub fn resource(&self, name: &str) -> Arc<Resource> {
        self.shared.resource(name)
    }

    /// All resources, in no order.
    pub fn resources(&self) -> Vec<Arc<Resource>> {
        self.shared.resources()
    }

    /// Makes a write durable and visible. Once it is queued it happens, whether or not this future is still awaited.
    pub async fn commit(&self, write: Write) -> Result<Committed, CommitError> {
        let (to, answer) = oneshot::channel();
        let unit = Unit {
            writes: smallvec::smallvec![self.prepare(write)?],
            answer: Answer::One(to),
        };
        self.enqueue(unit).await?;
        answer.await.unwrap_or_else(|_| Err(self.unanswered()))
    }

    /// Makes several writes durable together, or none of them. Not offered by engines with other writers.
    ///
    /// A reader may see one resource's part of it a moment before another's.
    pub async fn commit_many(
        &self,
        writes: Vec<Write>,
    ) -> Result<Vec<Committed>, TransactionError> {
        let at = |index| move |error| TransactionError { index, error };
        if self.shared.core.backend.writers() == Writers::Many && writes.len() > 1 {
            return Err(at(0)(CommitError::Unsupported));
        }
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
        self.enqueue(unit).await.map_err(at(0))?;
        answer
            .await
            .unwrap_or_else(|_| Err(at(0)(self.unanswered())))
    }

    /// Judges a write against the present state without making it: a dry run.
    pub fn rehearse(&self, write: Write) -> Result<(), CommitError> {
        let write = self.prepare(write)?;
        write.judge(write.resource.get(&write.key).as_ref())
    }

    /// The revision up to which everything is durable and seen by readers and watchers.
    pub fn visible(&self) -> u64 {
        self.shared.core.visible()
    }

    /// Bytes of the longest value that is accepted.
    pub fn max_value_bytes(&self) -> usize {
        self.shared.core.options.max_value_bytes
    }

    /// The compaction floor: what is older is gone.
    pub fn floor(&self) -> u64 {
        self.shared.core.floor()
    }

    /// Waits until `revision` is visible; false if it is not when the time is over.
    pub async fn wait_for(&self, revision: u64, timeout: Duration) -> bool {
        self.shared.core.wait_for(revision, timeout).await
    }

    /// Makes sure that reads from memory now see every commit acknowledged anywhere before this call.
    ///
    /// Immediate for an engine of one writer; others are asked for their last revision, which is then waited for.
    pub async fn freshen(&self, timeout: Duration) -> Result<bool, BackendError> {
        let core = &self.shared.core;
        if core.backend.writers() == Writers::One {
            return Ok(true);
        }
        let backend = core.backend.clone();
        let last = core.cold.run(move |_| backend.last_revision()).await;
        match last {
            Ok(last) => Ok(core.wait_for(last?, timeout).await),
            Err(_) => Ok(false),
        }
    }

    /// Every event of every resource: after a revision if memory still has it, or from now on.
    pub fn feed(&self, after: Option<u64>) -> Result<Feed, FeedError> {
        Feed::start(self.shared.clone(), after)
    }

    /// Starts a view on a resource that is kept up to date inside each commit.
    pub fn observe(&self, resource: &str, observer: Arc<dyn Observer>) {
        self.resource(resource).observe(observer);
    }

    /// The cache of other encodings.
    pub fn variants(&self) -> &Arc<Variants> {
        &self.shared.core.variants
    }

    /// Raises the floor to `upto` (at most the last revision) and forgets what is below.
    pub async fn compact(&self, upto: u64) -> Result<(), CommitError> {
        let (to, done) = oneshot::channel();
        let command = Command::Compact(upto, to);
        let queued = self.shared.queue.push_now(command);
        queued.map_err(|Closed| self.gone())?;
        done.await.map_err(|_| self.gone())
    }

    /// Whether an object was found that cannot be read any more (see [`Entry::is_damaged`](crate::Entry::is_damaged)).
    pub fn has_damaged(&self) -> bool {
        self.shared.core.damaged.load(Ordering::Relaxed)
    }

    /// Why the store takes no more writes, if it does not.
    pub fn poison(&self) -> Option<Arc<str>> {
        self.shared.core.poisoned()
    }

    /// Waits until the store is poisoned and tells why: the process should exit and recover from the log.
    pub async fn poisoned(&self) -> Arc<str> {
        let mut watch = self.shared.core.poison_watch();
        let reason = watch.wait_for(Option::is_some).await;
        match reason {
            Ok(reason) => reason.clone().unwrap_or_default(),
            Err(_) => std::future::pending().await,
        }
    }

    /// Finishes what is queued, closes the backend and ends every watch.
    pub async fn close(&self) {
        let (to, done) = oneshot::channel();
        if self.shared.queue.push_now(Command::Close(to)).is_ok() {
            // An error means that the thread is gone, which is as closed as can be.
            let _ = done.await;
        }
    }

    /// Sizes, for metrics.
    pub fn stats(&self) -> StoreStats {
        let core = &self.shared.core;
        StoreStats {
            visible: core.visible(),
            floor: core.floor(),
            queued: self.shared.queue.len(),
            variant_bytes: core.variants.held(),
            pinned_bytes: core.pins.lock().bytes(),
            past_bytes: core.old.held(),
            backend: core.backend.stats(),
        }
    }

    fn prepare(&self, write: Write) -> Result<Prepared, CommitError> {
        if !Arc::ptr_eq(&write.resource.core, &self.shared.core) {
            return Err(CommitError::Foreign);
        }
        let change = match write.change {
            Change::Delete => PreparedChange::Delete,
            Change::Put { value, shape } => {
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
        })
    }

    async fn enqueue(&self, unit: Unit) -> Result<(), CommitError> {
        let weight = unit.weight();
        let queued = self.shared.queue.push(Command::Commit(unit), weight).await;
        queued.map_err(|Closed| self.gone())
    }

    /// A store that closes answers everyone first, so this one did not close.
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

/// The sequencer's thread: whatever ends it, nobody is left waiting.
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

/// The thread that follows a log which others write to.
fn follow(shared: Arc<Shared>) {
    let after = shared.core.visible();
    let followed = shared.core.backend.follow(after, &mut |records| {
        if records.is_empty() {
            return !shared.core.is_closed();
        }
        shared.queue.push_now(Command::Followed(records)).is_ok()
    });
    if let Err(error) = followed {
        shared.core.poison(describe(&error));
    }
}

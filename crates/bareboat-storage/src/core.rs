//! The shared state of a store: the revision counter, the floor, the budgets, the health. It holds
//! no objects.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};

use crate::activity::Activity;
use crate::backend::{Attention, Backend, Limits};
use crate::cold::ColdReads;
use crate::event::FrameGauge;
use crate::old::OldEntries;
use crate::options::StoreOptions;
use crate::pins::Pins;
use crate::variants::Variants;

/// The state shared by the store, its resources and their watchers.
pub(crate) struct Core {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) options: StoreOptions,
    /// The limits of the engine. `options` do not exceed them.
    pub(crate) limits: Limits,
    /// The logical cluster of all records: the default one, whose name is empty.
    pub(crate) cluster: Arc<str>,
    pub(crate) variants: Arc<Variants>,
    pub(crate) cold: ColdReads,
    /// Counters for metrics.
    pub(crate) activity: Activity,
    /// Entries read from the log for old revisions.
    pub(crate) old: OldEntries,
    /// Snapshots kept for continue tokens.
    pub(crate) pins: parking_lot::Mutex<Pins>,
    /// Bytes held by encoded frames of events.
    pub(crate) frames: Arc<FrameGauge>,
    /// Whether other stores also write to the log.
    pub(crate) shared: bool,
    /// Memory has every event after this revision, except those that it has dropped since.
    loaded_after: AtomicU64,
    /// How often the whole state was loaded again.
    reloads: AtomicU64,
    /// When the last successful read of other stores' writes began.
    fresh: parking_lot::Mutex<Instant>,
    /// Whether a damaged entry was loaded.
    pub(crate) damaged: AtomicBool,
    visible: AtomicU64,
    floor: AtomicU64,
    moved: Notify,
    /// The number of live watchers of all resources.
    watchers: AtomicUsize,
    /// The number of reads that wait for a revision.
    reads: AtomicUsize,
    closed: AtomicBool,
    poison: watch::Sender<Option<Arc<str>>>,
}

impl Core {
    pub(crate) fn new(
        backend: Arc<dyn Backend>,
        mut options: StoreOptions,
        last: u64,
        loaded_after: u64,
    ) -> Self {
        let limits = backend.limits();
        options.max_batch = options.max_batch.min(limits.records);
        options.max_value_bytes = options.max_value_bytes.min(limits.value_bytes);
        Self {
            limits,
            floor: AtomicU64::new(backend.compacted()),
            visible: AtomicU64::new(last),
            variants: Arc::new(Variants::new(options.variant_bytes)),
            cold: ColdReads::new(),
            activity: Activity::new(),
            old: OldEntries::default(),
            pins: parking_lot::Mutex::default(),
            frames: Arc::new(FrameGauge::new(options.frame_bytes)),
            shared: backend.is_shared(),
            loaded_after: AtomicU64::new(loaded_after),
            reloads: AtomicU64::new(0),
            fresh: parking_lot::Mutex::new(Instant::now()),
            damaged: AtomicBool::new(false),
            moved: Notify::new(),
            watchers: AtomicUsize::new(0),
            reads: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            poison: watch::Sender::new(None),
            backend,
            options,
            cluster: "".into(),
        }
    }

    /// Returns the revision up to which everything is durable, applied and announced.
    pub(crate) fn visible(&self) -> u64 {
        self.visible.load(Ordering::Acquire)
    }

    pub(crate) fn advance(&self, revision: u64) {
        self.visible.store(revision, Ordering::Release);
        self.moved.notify_waiters();
    }

    pub(crate) fn floor(&self) -> u64 {
        self.floor.load(Ordering::Acquire)
    }

    pub(crate) fn raise_floor(&self, floor: u64) {
        self.floor.fetch_max(floor, Ordering::AcqRel);
    }

    /// Returns the revision after which memory had every event when it was loaded.
    pub(crate) fn loaded_after(&self) -> u64 {
        self.loaded_after.load(Ordering::Acquire)
    }

    /// Returns how often the whole state was loaded again. A reload ends all earlier watches.
    pub(crate) fn reloads(&self) -> u64 {
        self.reloads.load(Ordering::Acquire)
    }

    /// Records that memory no longer has the events up to `last`, and no history.
    pub(crate) fn reloaded(&self, last: u64) {
        self.loaded_after.store(last, Ordering::Release);
        self.raise_floor(last);
        self.reloads.fetch_add(1, Ordering::AcqRel);
    }

    /// Records that everything acknowledged before `begun` is visible.
    pub(crate) fn proven_fresh(&self, begun: Instant) {
        let mut fresh = self.fresh.lock();
        *fresh = (*fresh).max(begun);
    }

    /// Returns how long ago the store last knew all writes of other stores.
    pub(crate) fn unproven_for(&self) -> Duration {
        match self.shared {
            true => self.fresh.lock().elapsed(),
            false => Duration::ZERO,
        }
    }

    /// Counts a watcher: `came` is true for a new watcher, false for one that ended.
    pub(crate) fn count_watcher(&self, came: bool) {
        self.count(&self.watchers, came);
    }

    fn count(&self, waiting: &AtomicUsize, came: bool) {
        let before = match came {
            true => waiting.fetch_add(1, Ordering::AcqRel),
            false => waiting.fetch_sub(1, Ordering::AcqRel) - 1,
        };
        if before == 0 {
            self.tell_attention();
        }
    }

    /// Reports to the engine what waits for writes of other stores. Two callers may report in the wrong order; the
    /// report is repeated at intervals.
    pub(crate) fn tell_attention(&self) {
        if !self.shared {
            return;
        }
        let any = |waiting: &AtomicUsize| waiting.load(Ordering::Acquire) > 0;
        self.backend
            .attend(match (any(&self.reads), any(&self.watchers)) {
                (true, _) => Attention::Reads,
                (false, true) => Attention::Watchers,
                (false, false) => Attention::Nobody,
            });
    }

    pub(crate) async fn wait_for(&self, revision: u64, timeout: Duration) -> bool {
        if self.visible() >= revision {
            return true;
        }
        let _counted = Waiting::begin(self);
        let reached = async {
            loop {
                let moved = self.moved.notified();
                tokio::pin!(moved);
                moved.as_mut().enable();
                if self.visible() >= revision || self.is_closed() {
                    return;
                }
                moved.await;
            }
        };
        // The caller checks the counter afterwards: closing the store also ends the wait.
        let _ = tokio::time::timeout(timeout, reached).await;
        self.visible() >= revision
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.moved.notify_waiters();
    }

    /// Poisons the store. Only the first reason is kept, because later reasons are consequences of it.
    pub(crate) fn poison(&self, reason: Arc<str>) {
        self.poison.send_if_modified(|now| {
            let first = now.is_none();
            if first {
                tracing::error!(%reason, "the store accepts no more writes");
                *now = Some(reason);
            }
            first
        });
    }

    pub(crate) fn poisoned(&self) -> Option<Arc<str>> {
        self.poison.borrow().clone()
    }

    pub(crate) fn poison_watch(&self) -> watch::Receiver<Option<Arc<str>>> {
        self.poison.subscribe()
    }
}

/// A read that waits for a revision.
struct Waiting<'a>(&'a Core);

impl<'a> Waiting<'a> {
    fn begin(core: &'a Core) -> Self {
        core.count(&core.reads, true);
        Self(core)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.count(&self.0.reads, false);
    }
}

//! What every part of a store shares: the counter, the floor, the budgets, the health. It holds no objects.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use crate::backend::Backend;
use crate::cold::ColdReads;
use crate::event::FrameGauge;
use crate::old::OldEntries;
use crate::options::StoreOptions;
use crate::pins::Pins;
use crate::variants::Variants;

/// Shared by the store, its resources and their watchers.
pub(crate) struct Core {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) options: StoreOptions,
    pub(crate) variants: Arc<Variants>,
    pub(crate) cold: ColdReads,
    /// Entries of the past.
    pub(crate) old: OldEntries,
    /// Snapshots kept for continue tokens.
    pub(crate) pins: parking_lot::Mutex<Pins>,
    /// Bytes held by encoded frames of events.
    pub(crate) frames: Arc<FrameGauge>,
    /// Memory knows every event after this revision, of each resource, unless it forgot some since.
    pub(crate) loaded_after: u64,
    /// Whether an entry was loaded that cannot be read.
    pub(crate) damaged: AtomicBool,
    visible: AtomicU64,
    floor: AtomicU64,
    moved: Notify,
    closed: AtomicBool,
    poison: watch::Sender<Option<Arc<str>>>,
}

impl Core {
    pub(crate) fn new(
        backend: Arc<dyn Backend>,
        options: StoreOptions,
        last: u64,
        loaded_after: u64,
    ) -> Self {
        Self {
            floor: AtomicU64::new(backend.compacted()),
            visible: AtomicU64::new(last),
            variants: Arc::new(Variants::new(options.variant_bytes)),
            cold: ColdReads::new(),
            old: OldEntries::default(),
            pins: parking_lot::Mutex::default(),
            frames: Arc::new(FrameGauge::new(options.frame_bytes)),
            loaded_after,
            damaged: AtomicBool::new(false),
            moved: Notify::new(),
            closed: AtomicBool::new(false),
            poison: watch::Sender::new(None),
            backend,
            options,
        }
    }

    /// The revision up to which everything is durable, applied and announced.
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

    pub(crate) async fn wait_for(&self, revision: u64, timeout: Duration) -> bool {
        if self.visible() >= revision {
            return true;
        }
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
        // Whether it was reached is asked of the counter: a store that closes ends the wait too.
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

    /// The first poisoning stands; later ones are consequences.
    pub(crate) fn poison(&self, reason: Arc<str>) {
        self.poison.send_if_modified(|now| {
            let first = now.is_none();
            if first {
                tracing::error!(%reason, "the store takes no more writes");
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

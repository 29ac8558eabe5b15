//! The watch cache of one resource: its live entries, its recent events, its watchers.
//!
//! Only the sequencer changes it, in whole batches. Which objects may be in it, and who may see them, is not its concern.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};

use crate::core::Core;
use crate::entry::Entry;
use crate::event::{Event, EventKind};
use crate::ring::Ring;
use crate::slot::Slot;
use crate::snapshot::{Counts, Map, Snapshot, SnapshotError};
use crate::watch::index::Watchers;
use crate::watch::{WatchError, WatchSpec, Watcher};

/// One resource, such as `core/configmaps`.
pub struct Resource {
    pub(crate) name: Arc<str>,
    pub(crate) id: u32,
    pub(crate) core: Arc<Core>,
    // Lock order: hub before live.
    pub(crate) hub: Mutex<Hub>,
    live: RwLock<Live>,
    pins: Mutex<VecDeque<Pin>>,
}

/// What happens: behind one lock, since an event enters the ring and marks its watchers in one step.
pub(crate) struct Hub {
    pub(crate) ring: Ring,
    pub(crate) watchers: Watchers,
    observers: Vec<Arc<dyn Observer>>,
}

struct Live {
    map: Map,
    counts: Counts,
    /// The revision of the last change.
    changed: u64,
    bytes: usize,
}

struct Pin {
    snapshot: Snapshot,
    until: Instant,
}

/// A view that follows a resource inside the commit: it is up to date before anyone learns of the commit.
///
/// Called by the sequencer under the resource's lock: be quick, don't call back into the store, don't block.
pub trait Observer: Send + Sync {
    /// The whole state, once, when the view begins.
    fn reset(&self, snapshot: &Snapshot);
    /// One change, in order.
    fn changed(&self, event: &Arc<Event>);
}

/// Sizes of one resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceStats {
    /// Live entries.
    pub entries: usize,
    /// Wire bytes of the live entries.
    pub bytes: usize,
    /// Events in the ring.
    pub events: usize,
    /// Bytes counted for them.
    pub event_bytes: usize,
    /// Watchers.
    pub watchers: usize,
}

impl Resource {
    pub(crate) fn new(name: Arc<str>, id: u32, core: Arc<Core>) -> Self {
        Self {
            name,
            id,
            core,
            hub: Mutex::new(Hub {
                ring: Ring::new(0),
                watchers: Watchers::default(),
                observers: Vec::new(),
            }),
            live: RwLock::new(Live {
                map: Map::new(),
                counts: Counts::new(),
                changed: 0,
                bytes: 0,
            }),
            pins: Mutex::default(),
        }
    }

    /// The name it is stored under.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The live entry of a key.
    pub fn get(&self, key: &str) -> Option<Arc<Entry>> {
        self.live
            .read()
            .map
            .get(key)
            .map(|slot| slot.entry().clone())
    }

    /// How many entries are live.
    pub fn len(&self) -> usize {
        self.live.read().map.len()
    }

    /// Whether no entry is live.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The revision of the last change, 0 if there never was one.
    pub fn changed_at(&self) -> u64 {
        self.live.read().changed
    }

    /// The present state, exact at the revision it tells: the store's, not merely that of the last change here.
    pub fn snapshot(&self) -> Snapshot {
        // Read first: a batch may be applied here but not announced yet, and then its revision is the exact one.
        let visible = self.core.visible();
        let live = self.live.read();
        Snapshot {
            revision: visible.max(live.changed),
            map: live.map.clone(),
            counts: Some(live.counts.clone()),
        }
    }

    /// Waits until the store has reached `revision`; false if it has not when the time is over.
    pub async fn wait_for(&self, revision: u64, timeout: Duration) -> bool {
        self.core.wait_for(revision, timeout).await
    }

    /// Keeps a snapshot for [`Resource::snapshot_at`], for a while, however history is compacted. That while begins with
    /// the first time: nobody keeps a snapshot for ever by asking for it again and again.
    pub fn pin(&self, snapshot: &Snapshot) {
        let now = Instant::now();
        let mut pins = self.pins.lock();
        pins.retain(|pin| pin.until > now);
        if (pins.iter()).any(|pin| pin.snapshot.revision == snapshot.revision) {
            return;
        }
        while pins.len() >= self.core.options.max_pins.max(1) {
            pins.pop_front();
        }
        pins.push_back(Pin {
            snapshot: snapshot.clone(),
            until: now + self.core.options.pin_for,
        });
    }

    /// The snapshot that was pinned at `revision`, if it still is.
    pub fn pinned(&self, revision: u64) -> Option<Snapshot> {
        let now = Instant::now();
        let pins = self.pins.lock();
        pins.iter()
            .find(|pin| pin.snapshot.revision == revision && pin.until > now)
            .map(|pin| pin.snapshot.clone())
    }

    pub(crate) fn drop_stale_pins(&self, now: Instant) -> Option<Instant> {
        let mut pins = self.pins.lock();
        pins.retain(|pin| pin.until > now);
        pins.iter().map(|pin| pin.until).min()
    }

    /// The state as of `revision`: pinned, or unchanged since, or undone from recent events, or read from the log.
    pub async fn snapshot_at(self: &Arc<Self>, revision: u64) -> Result<Snapshot, SnapshotError> {
        if let Some(snapshot) = self.pinned(revision) {
            return Ok(snapshot);
        }
        // A batch that is applied here but not announced yet may already have been listed.
        let visible = self.core.visible().max(self.changed_at());
        if revision > visible {
            return Err(SnapshotError::Future { visible });
        }
        let floor = self.core.floor();
        if revision < floor {
            return Err(SnapshotError::Expired { floor });
        }
        if let Some(snapshot) = self.undone(revision) {
            return Ok(snapshot);
        }
        let this = self.clone();
        let read = self.core.cold.run(move || this.read_at(revision));
        read.await.map_err(|_| SnapshotError::Closed)?
    }

    /// Walks back from the present as far as the ring reaches.
    fn undone(&self, revision: u64) -> Option<Snapshot> {
        let hub = self.hub.lock();
        let (mut map, changed) = {
            let live = self.live.read();
            (live.map.clone(), live.changed)
        };
        if changed > revision {
            if revision < hub.ring.since() {
                return None;
            }
            let from = hub.ring.position_after(revision);
            for event in hub.ring.from(from).rev() {
                match (&event.kind, &event.prev) {
                    (EventKind::Added, _) | (_, None) => map.remove(event.key()),
                    (_, Some(prev)) => map.insert(prev.shared_key().clone(), prev.clone().into()),
                };
            }
        }
        Some(Snapshot {
            revision,
            map,
            counts: None,
        })
    }

    fn read_at(&self, revision: u64) -> Result<Snapshot, SnapshotError> {
        use crate::backend::BackendError;
        let mut map = Map::new();
        let mut malformed = None;
        let read = self
            .core
            .backend
            .read_at(&self.name, revision, &mut |record| {
                if let Some(value) = &record.value {
                    match value.entry(&record.key, record.revision) {
                        Ok(entry) => {
                            map.insert(record.key, entry.into());
                        }
                        Err(error) => malformed = Some(error),
                    }
                }
            });
        match (read, malformed) {
            (Ok(()), None) => Ok(Snapshot {
                revision,
                map,
                counts: None,
            }),
            (Err(BackendError::Compacted { floor }), _) => Err(SnapshotError::Expired { floor }),
            (Err(error), _) => Err(SnapshotError::Log(error)),
            (_, Some(error)) => Err(SnapshotError::Log(BackendError::Failed(Box::new(error)))),
        }
    }

    /// Starts a watch. One that starts further back than memory reaches is replayed from the log first.
    pub fn watch(self: &Arc<Self>, spec: WatchSpec) -> Result<Watcher, WatchError> {
        Watcher::start(self.clone(), spec)
    }

    /// Starts a view: it is given the state now and every change from here on.
    pub fn observe(&self, observer: Arc<dyn Observer>) {
        let mut hub = self.hub.lock();
        observer.reset(&self.snapshot());
        hub.observers.push(observer);
    }

    /// Ends a view.
    pub fn unobserve(&self, observer: &Arc<dyn Observer>) {
        let mut hub = self.hub.lock();
        hub.observers.retain(|known| !Arc::ptr_eq(known, observer));
    }

    /// Sizes, for metrics.
    pub fn stats(&self) -> ResourceStats {
        let hub = self.hub.lock();
        let live = self.live.read();
        ResourceStats {
            entries: live.map.len(),
            bytes: live.bytes,
            events: hub.ring.len(),
            event_bytes: hub.ring.bytes(),
            watchers: hub.watchers.len(),
        }
    }

    /// Applies the events of one batch and collects whom to wake.
    pub(crate) fn apply<'a>(
        &self,
        events: impl Iterator<Item = &'a Arc<Event>> + Clone,
        wake: &mut Vec<Waker>,
    ) {
        let mut hub = self.hub.lock();
        let hub = &mut *hub;
        self.live.write().apply(events.clone());
        for event in events {
            for observer in &hub.observers {
                observer.changed(event);
            }
            let at = hub.ring.push(event.clone());
            hub.watchers.announce(event, at, wake);
        }
    }

    /// Takes in a record while the store opens, when nobody watches yet.
    pub(crate) fn load(
        &self,
        entry: Option<Arc<Entry>>,
        key: &str,
        rev: u64,
    ) -> Option<Arc<Entry>> {
        self.live.write().put(entry, key, rev)
    }

    pub(crate) fn wake_all(&self, wake: &mut Vec<Waker>) {
        self.hub.lock().watchers.wake_all(wake);
    }
}

impl Live {
    fn apply<'a>(&mut self, events: impl Iterator<Item = &'a Arc<Event>>) {
        for event in events {
            let entry = (event.kind != EventKind::Deleted).then(|| event.entry.clone());
            self.put(entry, event.key(), event.rev);
        }
    }

    /// Keeps count of a namespace when an entry comes or goes.
    fn count(&mut self, key: &str, before: bool, now: bool) {
        let Some((namespace, _)) = key.split_once('/').filter(|_| before != now) else {
            return;
        };
        if let Some(count) = self.counts.get_mut(namespace) {
            *count = if now {
                *count + 1
            } else {
                count.saturating_sub(1)
            };
            if *count == 0 {
                self.counts.remove(namespace);
            }
        } else if now {
            self.counts.insert(namespace.into(), 1);
        }
    }

    fn put(&mut self, entry: Option<Arc<Entry>>, key: &str, rev: u64) -> Option<Arc<Entry>> {
        self.changed = rev;
        let lives = entry.is_some();
        let old = match entry {
            Some(entry) => {
                self.bytes += entry.json().len();
                self.map.insert(entry.shared_key().clone(), entry.into())
            }
            None => self.map.remove(key),
        };
        let old = old.map(Slot::into_entry);
        self.count(key, old.is_some(), lives);
        self.bytes -= old.as_ref().map_or(0, |old| old.json().len());
        old
    }
}

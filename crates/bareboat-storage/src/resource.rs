//! The watch cache of one resource: its live entries, its recent events, its watchers.
//!
//! Only the sequencer changes it, in whole batches. It does not validate or authorize anything.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::time::Duration;

use ahash::AHashMap;
use parking_lot::{Mutex, RwLock};

use crate::core::Core;
use crate::entry::Entry;
use crate::event::{Event, EventKind};
use crate::others::OtherStores;
use crate::past::PastState;
use crate::ring::Ring;
use crate::slot::Slot;
use crate::snapshot::{Counts, Map, Snapshot};
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
    /// Past states that snapshots share, by revision.
    pub(crate) past: Mutex<AHashMap<u64, Weak<PastState>>>,
    /// When other stores changed this resource.
    pub(crate) others: Mutex<OtherStores>,
    /// The highest revision that may be pinned; 0 if no revision is pinned.
    pub(crate) pinned_to: AtomicU64,
}

opaque_debug!(Resource);

/// Events and watchers, behind one lock, because an event enters the ring and marks its watchers in
/// one step.
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

/// A view that follows a resource inside the commit: it is up to date before the commit is
/// answered.
///
/// Called by the sequencer under the resource's lock: it must be fast, must not call the store, and
/// must not block.
///
/// ```
/// # mod bareboat { pub mod storage { pub use bareboat_storage::*; } }
/// use bareboat::storage::{Event, EventKind, Observer, Snapshot};
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// /// Counts the objects of a resource.
/// #[derive(Default)]
/// struct Count(AtomicUsize);
///
/// impl Observer for Count {
///     fn reset(&self, snapshot: &Snapshot) {
///         self.0.store(snapshot.len(), Ordering::Relaxed);
///     }
///
///     fn changed(&self, event: &Arc<Event>) {
///         match event.kind {
///             EventKind::Added => drop(self.0.fetch_add(1, Ordering::Relaxed)),
///             EventKind::Deleted => drop(self.0.fetch_sub(1, Ordering::Relaxed)),
///             EventKind::Modified => {}
///         }
///     }
/// }
/// ```
pub trait Observer: Send + Sync {
    /// Receives the whole state, once, when the view begins.
    fn reset(&self, snapshot: &Snapshot);
    /// Receives one change, in order.
    fn changed(&self, event: &Arc<Event>);
}

/// The sizes of one resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceStats {
    /// The number of live entries.
    pub entries: usize,
    /// Wire bytes of the live entries.
    pub bytes: usize,
    /// The number of events in the ring.
    pub events: usize,
    /// The bytes counted for these events.
    pub event_bytes: usize,
    /// The number of watchers.
    pub watchers: usize,
}

impl Resource {
    pub(crate) fn new(name: Arc<str>, id: u32, core: Arc<Core>) -> Self {
        Self {
            name,
            id,
            hub: Mutex::new(Hub {
                ring: Ring::new(core.loaded_after()),
                watchers: Watchers::default(),
                observers: Vec::new(),
            }),
            live: RwLock::new(Live::new(core.loaded_after())),
            past: Mutex::default(),
            others: Mutex::default(),
            pinned_to: AtomicU64::new(0),
            core,
        }
    }

    /// Returns the name of the resource in the log.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the live entry of a key.
    pub fn get(&self, key: &str) -> Option<Arc<Entry>> {
        self.live
            .read()
            .map
            .get(key)
            .map(|slot| slot.entry().clone())
    }

    /// Returns the number of live entries.
    pub fn len(&self) -> usize {
        self.live.read().map.len()
    }

    /// Returns whether there are no live entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the revision of the last change, or the revision since which changes are known.
    pub fn changed_at(&self) -> u64 {
        self.live.read().changed
    }

    /// Returns the present state. Its revision is that of the store, which may be higher than that of the resource's
    /// last change.
    pub fn snapshot(&self) -> Snapshot {
        // Read the counter first: a batch may be applied but not yet announced, and then the revision of the batch is
        // the exact one.
        let visible = self.core.visible();
        let live = self.live.read();
        Snapshot {
            revision: visible.max(live.changed),
            map: live.map.clone(),
            counts: Some(live.counts.clone()),
            as_of: live.changed,
            own_bytes: 0,
            _shared: None,
        }
    }

    /// Returns the live entries and the revision of the last change.
    pub(crate) fn live_map(&self) -> (Map, u64) {
        let live = self.live.read();
        (live.map.clone(), live.changed)
    }

    /// Returns the wire bytes of the live entries.
    pub(crate) fn live_bytes(&self) -> usize {
        self.live.read().bytes
    }

    /// Returns whether the resource is still needed if history before `floor` is compacted.
    pub(crate) fn is_used(&self, floor: u64) -> bool {
        let hub = self.hub.lock();
        let live = self.live.read();
        !live.map.is_empty()
            || live.changed > floor
            || hub.ring.len() > 0
            || hub.watchers.len() > 0
            || !hub.observers.is_empty()
            || self.core.pins.lock().any_of(self.id)
    }

    /// Waits until the store has reached `revision`; returns false after `timeout`.
    pub async fn wait_for(&self, revision: u64, timeout: Duration) -> bool {
        self.core.wait_for(revision, timeout).await
    }

    /// Starts a watch. A watch that starts before the events in memory first reads the log.
    pub fn watch(self: &Arc<Self>, spec: WatchSpec) -> Result<Watcher, WatchError> {
        Watcher::start(self.clone(), spec)
    }

    /// Starts a view: it receives the state now and every later change.
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

    /// Returns sizes for metrics.
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

    /// Applies the events of one batch and collects the watchers to wake.
    pub(crate) fn apply<'a>(
        &self,
        events: impl Iterator<Item = &'a Arc<Event>> + Clone,
        wake: &mut Vec<Waker>,
    ) {
        let mut hub = self.hub.lock();
        let hub = &mut *hub;
        self.live.write().apply(events.clone());
        self.charge_pins(events.clone());
        for event in events {
            for observer in &hub.observers {
                observer.changed(event);
            }
            let at = hub.ring.push(event.clone());
            hub.watchers.announce(event, at, wake);
        }
    }

    /// Replaces the state by one that was loaded from the log at `revision`. Empties the ring, wakes watchers so that
    /// they end, and passes the differences to observers.
    pub(crate) fn replace(&self, entries: Vec<Arc<Entry>>, revision: u64, wake: &mut Vec<Waker>) {
        let mut fresh = Live::new(revision);
        for entry in entries {
            let key = entry.shared_key().clone();
            fresh.put(Some(entry), &key, revision);
        }
        let mut hub = self.hub.lock();
        let old = std::mem::replace(&mut *self.live.write(), fresh).map;
        let (new, _) = self.live_map();
        let gone = old.iter().filter(|(key, _)| !new.contains_key(*key));
        let gone = gone.map(|(_, slot)| (None, Some(slot.entry().clone())));
        let kept = new.iter().filter_map(|(key, slot)| {
            let before = old.get(key).map(|slot| slot.entry().clone());
            let same = before.as_ref().is_some_and(|before| {
                before.revision() == slot.entry().revision()
                    && before.persisted() == slot.entry().persisted()
            });
            (!same).then(|| (Some(slot.entry().clone()), before))
        });
        for (entry, before) in gone.chain(kept) {
            if let Some(event) = Event::new(revision, entry, before, &self.core.frames) {
                let event = Arc::new(event);
                for observer in &hub.observers {
                    observer.changed(&event);
                }
            }
        }
        hub.ring.restart(revision);
        hub.watchers.wake_all(wake);
    }

    /// Loads a record while the store opens, before there are watchers.
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
    fn new(changed: u64) -> Self {
        Self {
            map: Map::new(),
            counts: Counts::new(),
            changed,
            bytes: 0,
        }
    }

    fn apply<'a>(&mut self, events: impl Iterator<Item = &'a Arc<Event>>) {
        for event in events {
            let entry = (event.kind != EventKind::Deleted).then(|| event.entry.clone());
            self.put(entry, event.key(), event.rev);
        }
    }

    /// Updates the number of entries in a namespace when an entry is added or removed.
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

//! Snapshots pinned for continue tokens: for a limited time, and with a limit on the bytes that
//! only pins keep alive.
//!
//! A replaced entry is charged to the pin with the highest revision, because that pin releases it
//! last: it contains every entry that any pin of the resource still holds. The pins of a resource
//! are dropped lowest revision first.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use ahash::AHashMap;

use crate::entry::Entry;
use crate::event::Event;
use crate::resource::Resource;
use crate::snapshot::Snapshot;

/// The overhead of a replaced entry in bytes: the entry itself and its nodes in the map.
const FIXED: usize = 1024;
/// If more events than this came between a snapshot and its pin, the whole resource counts as
/// changed.
const FEW: usize = 1024;

/// The pins of all resources.
#[derive(Default)]
pub(crate) struct Pins {
    /// The pins of each resource, by the number of the resource. Each list is sorted by revision and never empty.
    of: AHashMap<u32, VecDeque<Pin>>,
    bytes: usize,
    /// The earliest time at which a pin may expire.
    earliest: Option<Instant>,
}

struct Pin {
    snapshot: Snapshot,
    until: Instant,
    bytes: usize,
}

impl Pins {
    /// Returns the bytes that only pins keep alive.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the time of the next expiry; `None` if there are no pins.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.earliest
    }

    /// Drops all pins.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns whether a resource has pins.
    pub(crate) fn any_of(&self, resource: u32) -> bool {
        self.of.contains_key(&resource)
    }

    fn find(&self, resource: u32, revision: u64, now: Instant) -> Option<&Snapshot> {
        let mut pins = self.of.get(&resource)?.iter();
        let pin = pins.find(|pin| pin.snapshot.revision == revision && pin.until > now);
        pin.map(|pin| &pin.snapshot)
    }

    fn add(&mut self, resource: u32, pin: Pin, most: usize, gone: &mut Vec<Snapshot>) {
        let pins = self.of.entry(resource).or_default();
        let at = pins.partition_point(|known| known.snapshot.revision < pin.snapshot.revision);
        self.bytes += pin.bytes;
        self.earliest = Some(self.earliest.map_or(pin.until, |at| at.min(pin.until)));
        pins.insert(at, pin);
        while self.of.get(&resource).is_some_and(|pins| pins.len() > most) {
            self.drop_oldest(resource, gone);
        }
    }

    fn charge(&mut self, resource: u32, bytes: usize) {
        if let Some(newest) = self.of.get_mut(&resource).and_then(VecDeque::back_mut) {
            newest.bytes += bytes;
            self.bytes += bytes;
        }
    }

    /// Drops pins while they exceed `limit`: the oldest pin of the resource with the most pinned bytes goes first.
    fn shed(&mut self, limit: usize, gone: &mut Vec<Snapshot>) {
        while self.bytes > limit {
            let weigh = |pins: &VecDeque<Pin>| pins.iter().map(|pin| pin.bytes).sum::<usize>();
            let heaviest = self.of.iter().max_by_key(|(_, pins)| weigh(pins));
            let Some((&resource, _)) = heaviest else {
                return;
            };
            self.drop_oldest(resource, gone);
        }
    }

    fn drop_oldest(&mut self, resource: u32, gone: &mut Vec<Snapshot>) {
        let Some(pins) = self.of.get_mut(&resource) else {
            return;
        };
        if let Some(pin) = pins.pop_front() {
            self.bytes -= pin.bytes;
            gone.push(pin.snapshot);
        }
        if pins.is_empty() {
            self.of.remove(&resource);
        }
    }

    /// Drops expired pins. An older pin may hold the same entries, and is then charged for them.
    pub(crate) fn drop_expired(&mut self, now: Instant, gone: &mut Vec<Snapshot>) {
        if self.earliest.is_none_or(|earliest| earliest > now) {
            return;
        }
        let bytes = &mut self.bytes;
        self.of.retain(|_, pins| {
            let mut at = 0;
            while at < pins.len() {
                if pins[at].until > now {
                    at += 1;
                    continue;
                }
                let Some(pin) = pins.remove(at) else {
                    break;
                };
                match at.checked_sub(1).and_then(|older| pins.get_mut(older)) {
                    Some(older) => older.bytes += pin.bytes,
                    None => *bytes -= pin.bytes,
                }
                gone.push(pin.snapshot);
            }
            !pins.is_empty()
        });
        self.earliest = self.of.values().flatten().map(|pin| pin.until).min();
    }

    /// Returns the highest pinned revision of a resource; 0 if there are no pins.
    fn newest(&self, resource: u32) -> u64 {
        let newest = self.of.get(&resource).and_then(VecDeque::back);
        newest.map_or(0, |pin| pin.snapshot.revision)
    }
}

impl Resource {
    /// Pins a snapshot for [`Resource::snapshot_at`] for a limited time, even if its revision is
    /// compacted. The time runs from the first call; another call does not renew it. The pin may
    /// end earlier when all pins together exceed their limit.
    pub fn pin(&self, snapshot: &Snapshot) {
        let now = Instant::now();
        let options = &self.core.options;
        let mut gone = Vec::new();
        // The lock is held throughout: later events find the pin, and earlier events are counted here.
        let hub = self.hub.lock();
        let mut pins = self.core.pins.lock();
        pins.drop_expired(now, &mut gone);
        if pins.find(self.id, snapshot.revision, now).is_none() {
            let since = hub.ring.position_after(snapshot.as_of);
            let missed = (hub.ring.end() - since) as usize;
            let bytes = match missed > FEW || snapshot.as_of < hub.ring.since() {
                true => self.live_bytes(),
                false => (hub.ring.from(since))
                    .filter_map(|event| replaced_since(event, snapshot.revision))
                    .sum(),
            };
            let pin = Pin {
                snapshot: snapshot.clone(),
                until: now + options.pin_for,
                bytes: snapshot.own_bytes + bytes,
            };
            pins.add(self.id, pin, options.max_pins.max(1), &mut gone);
            pins.shed(options.pin_bytes, &mut gone);
        }
        self.pinned_to
            .store(pins.newest(self.id), Ordering::Relaxed);
        drop(pins);
        drop(hub);
        self.discard(gone);
    }

    /// Returns the snapshot pinned at `revision`; `None` if it is not or no longer pinned.
    pub fn pinned(&self, revision: u64) -> Option<Snapshot> {
        if self.pinned_to.load(Ordering::Relaxed) < revision {
            return None;
        }
        let pins = self.core.pins.lock();
        pins.find(self.id, revision, Instant::now()).cloned()
    }

    /// Charges pins with the states that events replaced. Called with the events' lock held.
    pub(crate) fn charge_pins<'a>(&self, events: impl Iterator<Item = &'a Arc<Event>>) {
        let newest = self.pinned_to.load(Ordering::Relaxed);
        if newest == 0 {
            return;
        }
        let bytes: usize = events
            .filter_map(|event| replaced_since(event, newest))
            .sum();
        let mut gone = Vec::new();
        let mut pins = self.core.pins.lock();
        pins.charge(self.id, bytes);
        pins.shed(self.core.options.pin_bytes, &mut gone);
        self.pinned_to
            .store(pins.newest(self.id), Ordering::Relaxed);
        drop(pins);
        self.discard(gone);
    }

    fn discard(&self, gone: Vec<Snapshot>) {
        if !gone.is_empty() {
            self.core.cold.discard(gone);
        }
    }
}

/// Returns the bytes of a replaced state that only a snapshot at `revision` keeps alive.
fn replaced_since(event: &Event, revision: u64) -> Option<usize> {
    let weigh = |entry: &Arc<Entry>| FIXED + entry.json().len();
    let replaced = event.prev.as_ref();
    replaced
        .filter(|entry| entry.revision() <= revision)
        .map(weigh)
}

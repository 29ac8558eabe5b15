//! Snapshots kept for continue tokens: for a while, and only so many bytes of what nothing else keeps alive.
//!
//! Of what is replaced, the pin with the highest revision is the last to let go, since every entry that any pin of a
//! resource still holds is in that one too. So it is charged there, and the pins of a resource go lowest revision first.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use ahash::AHashMap;

use crate::entry::Entry;
use crate::event::Event;
use crate::resource::Resource;
use crate::snapshot::Snapshot;

/// What a replaced entry counts for beside its bytes: it and the nodes of the map that lead to it.
const FIXED: usize = 1024;
/// If more events than this came between a snapshot and its pin, all of the resource is taken to have changed.
const FEW: usize = 1024;

/// The pins of all resources.
#[derive(Default)]
pub(crate) struct Pins {
    /// By the number of the resource; each list in order of revision and never empty.
    of: AHashMap<u32, VecDeque<Pin>>,
    bytes: usize,
    /// No pin expires before this.
    earliest: Option<Instant>,
}

struct Pin {
    snapshot: Snapshot,
    until: Instant,
    bytes: usize,
}

impl Pins {
    /// Bytes that only pins keep alive.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// When to look for expired ones; never, if there are none.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.earliest
    }

    /// Whether a resource has pins.
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

    /// Lets pins go while they weigh too much: the oldest of the resource whose pins weigh most.
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

    /// Lets expired pins go. What they are charged for an older one may hold, too, and is charged there from then on.
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

    /// The highest revision that a resource has pinned, 0 if there is none.
    fn newest(&self, resource: u32) -> u64 {
        let newest = self.of.get(&resource).and_then(VecDeque::back);
        newest.map_or(0, |pin| pin.snapshot.revision)
    }
}

impl Resource {
    /// Keeps a snapshot for [`Resource::snapshot_at`] for a while, even if its revision is compacted. The time runs from
    /// the first call; asking again does not renew it. It may go earlier when all pins together weigh too much.
    pub fn pin(&self, snapshot: &Snapshot) {
        let now = Instant::now();
        let options = &self.core.options;
        let mut gone = Vec::new();
        // Held throughout: what is applied later finds the pin, and what was applied before is counted here.
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

    /// The snapshot that was pinned at `revision`, if it still is.
    pub fn pinned(&self, revision: u64) -> Option<Snapshot> {
        if self.pinned_to.load(Ordering::Relaxed) < revision {
            return None;
        }
        let pins = self.core.pins.lock();
        pins.find(self.id, revision, Instant::now()).cloned()
    }

    /// Charges pins with what events replaced. Called with the events' lock held.
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

/// What a snapshot at `revision` alone keeps of what an event replaced.
fn replaced_since(event: &Event, revision: u64) -> Option<usize> {
    let weigh = |entry: &Arc<Entry>| FIXED + entry.json().len();
    let replaced = event.prev.as_ref();
    replaced
        .filter(|entry| entry.revision() <= revision)
        .map(weigh)
}

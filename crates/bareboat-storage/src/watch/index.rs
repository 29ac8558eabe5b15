//! Finds the watchers of an event: by key, by namespace, by one label, and the rest.
//!
//! This module marks watchers and collects their wakers. Other code wakes and filters, outside of this lock.

use std::sync::Arc;
use std::task::Waker;

use ahash::AHashMap;
use smallvec::SmallVec;

use super::{Scope, WatchSpec};
use crate::event::Event;

/// The watchers of one resource.
#[derive(Default)]
pub(crate) struct Watchers {
    slots: Vec<Slot>,
    /// Slots that may be free. A listed slot may have been used again or removed.
    free: Vec<u32>,
    entered: usize,
    all: List,
    by_key: AHashMap<Box<str>, List>,
    by_namespace: AHashMap<Box<str>, List>,
    by_label: AHashMap<Box<str>, AHashMap<Box<str>, List>>,
}

type List = SmallVec<[u32; 4]>;

/// The value of `pending_from` for a watcher that has no due events.
const NOTHING: u64 = u64::MAX;

struct Slot {
    spec: Option<Arc<WatchSpec>>,
    waker: Option<Waker>,
    pending_from: u64,
    /// The position of this watcher in its list, so that removing it needs no search.
    place: u32,
}

impl Watchers {
    pub(crate) fn len(&self) -> usize {
        self.entered
    }

    /// Adds a watcher. If `pending_from` is given, all events from that ring position on are due.
    pub(crate) fn enter(&mut self, spec: Arc<WatchSpec>, pending_from: Option<u64>) -> u32 {
        self.entered += 1;
        let id = self.free_slot();
        let list = self.list(&spec);
        list.push(id);
        let place = (list.len() - 1) as u32;
        self.slots[id as usize] = Slot {
            spec: Some(spec),
            waker: None,
            pending_from: pending_from.unwrap_or(NOTHING),
            place,
        };
        id
    }

    /// Removes a watcher and returns its waker, which must be dropped outside the lock.
    pub(crate) fn leave(&mut self, id: u32) -> Option<Waker> {
        let slot = &mut self.slots[id as usize];
        let spec = slot.spec.take()?;
        let waker = slot.waker.take();
        let place = slot.place as usize;
        slot.pending_from = NOTHING;
        let list = self.list(&spec);
        list.swap_remove(place);
        let moved = list.get(place).copied();
        let empty = list.is_empty();
        if let Some(moved) = moved {
            self.slots[moved as usize].place = place as u32;
        }
        if empty {
            self.forget(&spec);
        }
        self.entered -= 1;
        self.free.push(id);
        self.give_back_slots();
        waker
    }

    /// Returns the index of a free slot.
    fn free_slot(&mut self) -> u32 {
        while let Some(id) = self.free.pop() {
            let slot = self.slots.get(id as usize);
            if slot.is_some_and(|slot| slot.spec.is_none()) {
                return id;
            }
        }
        self.slots.push(Slot {
            spec: None,
            waker: None,
            pending_from: NOTHING,
            place: 0,
        });
        (self.slots.len() - 1) as u32
    }

    /// Releases memory as watchers leave. Watchers keep their numbers, so only free slots at the end can be removed.
    fn give_back_slots(&mut self) {
        while self.slots.last().is_some_and(|slot| slot.spec.is_none()) {
            self.slots.pop();
        }
        if self.slots.capacity() > 4 * self.slots.len() {
            self.slots.shrink_to(2 * self.slots.len());
        }
        if self.free.len() > 2 * self.slots.len() {
            let slots = self.slots.len();
            self.free.retain(|id| (*id as usize) < slots);
            self.free.shrink_to(2 * self.free.len());
        }
    }

    /// Returns the ring position from which on an event may be due.
    pub(crate) fn pending(&self, id: u32) -> Option<u64> {
        let from = self.slots[id as usize].pending_from;
        (from != NOTHING).then_some(from)
    }

    pub(crate) fn set_pending(&mut self, id: u32, from: Option<u64>) {
        self.slots[id as usize].pending_from = from.unwrap_or(NOTHING);
    }

    /// Stores a waker and returns the replaced one.
    pub(crate) fn park(&mut self, id: u32, waker: &Waker) -> Option<Waker> {
        let slot = &mut self.slots[id as usize];
        match &slot.waker {
            Some(known) if known.will_wake(waker) => None,
            _ => slot.waker.replace(waker.clone()),
        }
    }

    /// Marks all watchers that may match the event at ring position `at`, and collects the wakers.
    pub(crate) fn announce(&mut self, event: &Event, at: u64, wake: &mut Vec<Waker>) {
        for &id in &self.all {
            self.slots[id as usize].mark(at, wake);
        }
        if let Some(list) = self.by_key.get(event.key()) {
            for &id in list {
                self.slots[id as usize].mark(at, wake);
            }
        }
        if !self.by_namespace.is_empty()
            && let Some(ns) = event.entry.namespace()
            && let Some(list) = self.by_namespace.get(ns)
        {
            for &id in list {
                self.slots[id as usize].mark(at, wake);
            }
        }
        if !self.by_label.is_empty() {
            // The old labels also count: a watcher must see that an object left its selection.
            let states = std::iter::once(&event.entry).chain(&event.prev);
            for (key, value) in states.flat_map(|entry| &entry.facets().labels) {
                let values = self.by_label.get(key);
                for &id in values.and_then(|v| v.get(value)).into_iter().flatten() {
                    let slot = &mut self.slots[id as usize];
                    if slot
                        .spec
                        .as_ref()
                        .is_some_and(|spec| spec.scope.holds(event))
                    {
                        slot.mark(at, wake);
                    }
                }
            }
        }
    }

    /// Takes all wakers, because the store closes.
    pub(crate) fn wake_all(&mut self, wake: &mut Vec<Waker>) {
        wake.extend(self.slots.iter_mut().filter_map(|slot| slot.waker.take()));
    }

    fn list(&mut self, spec: &WatchSpec) -> &mut List {
        match (&spec.scope, &spec.label) {
            (Scope::Name(key), _) => self.by_key.entry(key.clone()).or_default(),
            (_, Some((key, value))) => self
                .by_label
                .entry(key.clone())
                .or_default()
                .entry(value.clone())
                .or_default(),
            (Scope::Namespace(ns), None) => self.by_namespace.entry(ns.clone()).or_default(),
            (Scope::All, None) => &mut self.all,
        }
    }

    fn forget(&mut self, spec: &WatchSpec) {
        match (&spec.scope, &spec.label) {
            (Scope::Name(key), _) => {
                self.by_key.remove(key);
                give_back(&mut self.by_key);
            }
            (_, Some((key, value))) => {
                if let Some(values) = self.by_label.get_mut(key) {
                    values.remove(value);
                    give_back(values);
                    if values.is_empty() {
                        self.by_label.remove(key);
                        give_back(&mut self.by_label);
                    }
                }
            }
            (Scope::Namespace(ns), None) => {
                self.by_namespace.remove(ns);
                give_back(&mut self.by_namespace);
            }
            (Scope::All, None) => self.all = List::new(),
        }
    }
}

/// Releases memory when few of many entries remain.
fn give_back<V>(map: &mut AHashMap<Box<str>, V>) {
    if map.capacity() > 4 * map.len() + 64 {
        map.shrink_to_fit();
    }
}

impl Slot {
    fn mark(&mut self, at: u64, wake: &mut Vec<Waker>) {
        if self.pending_from == NOTHING {
            self.pending_from = at;
        }
        wake.extend(self.waker.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_of_removed_watchers_are_released() {
        let mut watchers = Watchers::default();
        let spec = |n: u32| Arc::new(WatchSpec::name(0, format!("ns/{n}")));
        let ids: Vec<u32> = (0..10_000).map(|n| watchers.enter(spec(n), None)).collect();
        for id in &ids[10..] {
            watchers.leave(*id);
        }
        assert_eq!(watchers.len(), 10);
        assert_eq!(watchers.slots.len(), 10);
        assert!(watchers.slots.capacity() <= 40 && watchers.free.capacity() <= 40);
        assert!(watchers.by_key.capacity() < 500);
        // The remaining numbers keep their meaning, and new numbers differ from them.
        let new = watchers.enter(spec(20_000), Some(7));
        assert!(!ids[..10].contains(&new));
        assert_eq!(watchers.pending(new), Some(7));
        for id in ids[..10].iter().chain([&new]) {
            watchers.leave(*id);
        }
        assert_eq!((watchers.len(), watchers.slots.capacity()), (0, 0));
    }
}

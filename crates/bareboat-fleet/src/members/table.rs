//! All members at a moment, for views; it is replaced when something changes. It also collects whose status is to be written.

use super::state::MemberState;
use crate::sync::writer::Clock;
use bareboat_views::Fleet;
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::Notify;

/// All members.
pub(crate) struct Table {
    states: RwLock<BTreeMap<String, Arc<MemberState>>>,
    fleet: RwLock<Arc<Fleet>>,
    /// Members whose status changed.
    dirty: Mutex<BTreeSet<String>>,
    pub(crate) wake: Notify,
    clock: Clock,
}

impl Table {
    pub(crate) fn new(clock: Clock) -> Arc<Table> {
        Arc::new(Table {
            states: RwLock::default(),
            fleet: RwLock::default(),
            dirty: Mutex::default(),
            wake: Notify::new(),
            clock,
        })
    }

    /// The time in milliseconds since 1970.
    pub(crate) fn now(&self) -> i64 {
        (self.clock)()
    }

    /// Adds a member.
    pub(crate) fn add(&self, state: &Arc<MemberState>) {
        self.states
            .write()
            .insert(state.name.to_string(), state.clone());
        self.changed(&state.name);
    }

    /// Removes a member: views no longer show it.
    pub(crate) fn remove(&self, name: &str) {
        self.states.write().remove(name);
        let mut fleet = self.fleet.write();
        let mut members = fleet.members.clone();
        members.remove(name);
        *fleet = Arc::new(Fleet { members });
    }

    /// Returns what is known about a member.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<MemberState>> {
        self.states.read().get(name).cloned()
    }

    /// Returns all members.
    pub(crate) fn all(&self) -> Vec<Arc<MemberState>> {
        self.states.read().values().cloned().collect()
    }

    /// Something about a member changed.
    pub(crate) fn changed(&self, name: &str) {
        self.publish(name);
        self.dirty.lock().insert(name.to_owned());
        self.wake.notify_one();
    }

    /// Renews what views see of a member.
    pub(crate) fn publish(&self, name: &str) {
        let Some(state) = self.get(name) else {
            return;
        };
        let member = Arc::new(state.view());
        let mut fleet = self.fleet.write();
        // It may have been removed meanwhile.
        if self.states.read().contains_key(name) {
            let mut members = fleet.members.clone();
            members.insert(name.to_owned(), member);
            *fleet = Arc::new(Fleet { members });
        }
    }

    /// Takes the names of members whose status changed.
    pub(crate) fn take_dirty(&self) -> BTreeSet<String> {
        std::mem::take(&mut *self.dirty.lock())
    }

    /// Returns what views see.
    pub(crate) fn fleet(&self) -> Arc<Fleet> {
        self.fleet.read().clone()
    }
}

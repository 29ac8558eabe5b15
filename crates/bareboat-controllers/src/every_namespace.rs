//! Notices namespaces in which an object may be missing or changed that every namespace should have. What the object
//! contains, its controller knows.

use crate::feed::Listener;
use crate::kinds::NAMESPACES;
use crate::queue::Queue;
use bareboat_storage::{Event, EventKind, Resource, Store};
use std::sync::Arc;

/// Adds the names of such namespaces to a queue.
pub(crate) struct EveryNamespace {
    pub(crate) queue: Arc<Queue<Arc<str>>>,
    /// The stored resource of the object.
    pub(crate) resource: &'static str,
    /// The name of the object.
    pub(crate) name: &'static str,
}

impl Listener for EveryNamespace {
    fn reset(&mut self, store: &Store) {
        for entry in store.resource(NAMESPACES).snapshot().range("", None) {
            self.queue.add(entry.key().into());
        }
    }

    fn on_event(&mut self, resource: &Arc<Resource>, event: &Event) {
        let entry = &event.entry;
        let is_new = event.kind == EventKind::Added;
        if resource.name() == NAMESPACES && is_new {
            self.queue.add(event.key().into());
        } else if resource.name() == self.resource && !is_new && entry.name() == self.name {
            self.queue.add(entry.namespace().unwrap_or_default().into());
        }
    }
}

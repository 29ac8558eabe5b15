//! Queues the flow schemas and priority levels that changed.

use super::{ObjectName, Which, level};
use crate::feed::Listener;
use crate::kinds::read;
use crate::queue::Queue;
use bareboat_storage::{Entry, Event, EventKind, Resource, Store};
use std::collections::HashMap;
use std::sync::Arc;

/// Listens for changes of schemas and levels.
pub(crate) struct FlowListener {
    queue: Arc<Queue<ObjectName>>,
    /// The level of every schema.
    levels: HashMap<Arc<str>, String>,
}

impl FlowListener {
    pub(crate) fn new(queue: Arc<Queue<ObjectName>>) -> FlowListener {
        FlowListener {
            queue,
            levels: HashMap::new(),
        }
    }

    fn learn(&mut self, entry: &Entry) {
        if let Ok(schema) = read(entry) {
            let level = level(&schema).to_owned();
            self.levels.insert(entry.key().into(), level);
        }
    }
}

impl Listener for FlowListener {
    fn reset(&mut self, store: &Store) {
        self.levels.clear();
        for which in Which::ALL {
            let snapshot = store.resource(which.store()).snapshot();
            for entry in snapshot.range("", None) {
                if which == Which::Schema {
                    self.learn(entry);
                }
                self.queue.add((which, entry.key().into()));
            }
        }
    }

    fn on_event(&mut self, resource: &Arc<Resource>, event: &Event) {
        let Some(which) = Which::of(resource.name()) else {
            return;
        };
        self.queue.add((which, event.key().into()));
        let deleted = event.kind == EventKind::Deleted;
        match which {
            Which::Schema if deleted => drop(self.levels.remove(event.key())),
            Which::Schema => self.learn(&event.entry),
            // A level that comes or goes changes what its schemas say.
            Which::Level if deleted || event.kind == EventKind::Added => {
                let schemas = self.levels.iter();
                let schemas = schemas.filter(|(_, level)| *level == event.key());
                for (schema, _) in schemas {
                    self.queue.add((Which::Schema, schema.clone()));
                }
            }
            Which::Level => {}
        }
    }
}

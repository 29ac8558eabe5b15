//! The compiled configurations of webhooks, kept up to date inside each commit.

use super::hook::Hook;
use crate::admission::matching::Index;
use arc_swap::ArcSwap;
use bareboat_api::Value;
use bareboat_storage::{Entry, Event, EventKind, Observer, Snapshot};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// All hooks in the order in which they are called: by the name of their configuration, then as listed in it.
#[derive(Default)]
pub(super) struct Table {
    pub(super) hooks: Vec<Arc<Hook>>,
    pub(super) index: Index,
}

/// Compiles configurations as they are written.
pub(super) struct Configurations {
    known: Mutex<BTreeMap<String, Vec<Arc<Hook>>>>,
    table: Arc<ArcSwap<Table>>,
}

impl Configurations {
    pub(super) fn new(table: Arc<ArcSwap<Table>>) -> Configurations {
        Configurations {
            known: Mutex::default(),
            table,
        }
    }

    fn publish(&self, known: &BTreeMap<String, Vec<Arc<Hook>>>) {
        let hooks: Vec<Arc<Hook>> = known.values().flatten().cloned().collect();
        let index = Index::new(hooks.iter().map(|hook| hook.criteria.rules()));
        self.table.store(Arc::new(Table { hooks, index }));
    }
}

/// Reads the hooks of a configuration.
fn read(entry: &Entry) -> Vec<Arc<Hook>> {
    let parsed = match bareboat_wire::json::parse(entry.json()) {
        Ok(parsed) => parsed.value,
        // An unreadable object is not served either.
        Err(error) => {
            tracing::error!(key = entry.key(), %error, "a stored webhook configuration does not parse");
            return Vec::new();
        }
    };
    let hooks = parsed.get("webhooks").and_then(Value::as_array);
    let hooks = hooks.unwrap_or(&[]).iter().enumerate();
    hooks
        .map(|(place, hook)| Arc::new(Hook::read(entry.key(), place, hook)))
        .collect()
}

impl Observer for Configurations {
    fn reset(&self, snapshot: &Snapshot) {
        let mut known = self.known.lock();
        known.clear();
        for entry in snapshot.range("", None) {
            known.insert(entry.key().to_owned(), read(entry));
        }
        self.publish(&known);
    }

    fn changed(&self, event: &Arc<Event>) {
        let mut known = self.known.lock();
        match event.kind {
            EventKind::Deleted => known.remove(event.key()),
            _ => known.insert(event.key().to_owned(), read(&event.entry)),
        };
        self.publish(&known);
    }
}

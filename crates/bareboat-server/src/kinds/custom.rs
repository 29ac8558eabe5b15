//! CustomResourceDefinitions: kinds that come and go while the server runs.
//!
//! A definition is served from the moment its write is acknowledged, because the catalog is
//! changed inside the commit. Deleting the instances of a deleted one is a controller's work.

mod columns;
mod conversion;
mod kind;
mod shape;
mod strategy;
mod subresources;

pub use strategy::CLEANUP_FINALIZER;

use super::catalog::{Catalog, Serving};
use super::served::{Served, parse_entry};
use crate::outbound::Outbound;
use bareboat_api::Value;
use bareboat_schema::SchemaCache;
use bareboat_schema::crd::{Definition, Taken};
use bareboat_storage::{Entry, Event, EventKind, Observer, Snapshot, Store};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};
use strategy::DefinitionStrategy;

/// Where definitions are stored.
pub const STORE: &str = "apiextensions.k8s.io/customresourcedefinitions";

/// Keeps the catalog in step with the definitions in the store.
pub(crate) struct CustomKinds {
    /// Weak: the catalog belongs to the server, which holds this.
    catalog: Weak<Catalog>,
    store: Store,
    cache: Arc<SchemaCache>,
    /// Calls converters.
    outbound: Arc<Outbound>,
    names: Names,
}

/// The names definitions hold, by group and by the name of the definition.
type Names = Arc<Mutex<HashMap<String, BTreeMap<String, Value>>>>;

impl CustomKinds {
    pub(crate) fn new(
        catalog: &Arc<Catalog>,
        store: &Store,
        outbound: &Arc<Outbound>,
    ) -> CustomKinds {
        CustomKinds {
            catalog: Arc::downgrade(catalog),
            store: store.clone(),
            cache: Arc::new(SchemaCache::new()),
            outbound: outbound.clone(),
            names: Names::default(),
        }
    }

    /// The strategy of the kind CustomResourceDefinition.
    pub(crate) fn strategy(&self) -> DefinitionStrategy {
        DefinitionStrategy::new(self.names.clone())
    }

    fn put(&self, entry: &Arc<Entry>) {
        let Ok(object) = parse_entry(entry) else {
            return;
        };
        let value = Value::from(object);
        let definition = Definition::parse(&value);
        if let Some(names) = value.at(&["status", "acceptedNames"]) {
            let mut all = self.names.lock();
            let group = all.entry(definition.group.to_string()).or_default();
            group.insert(definition.name.to_string(), names.clone());
        }
        let Some(catalog) = self.catalog.upgrade() else {
            return;
        };
        if !definition.established {
            catalog.remove(&definition.group, &definition.names.plural);
            return;
        }
        let mut kind = kind::of(&definition, &value, entry, &self.cache, &self.outbound);
        let connections = subresources::add(&mut kind, &value);
        let taken_by_built_in = catalog
            .table()
            .find(&definition.group, &kind.names.plural)
            .is_some_and(|serving| !serving.kind().custom);
        if !taken_by_built_in {
            let served = Served::new(kind, &self.store).with_connections(connections);
            catalog.insert(Serving::Stored(Arc::new(served)));
        }
    }

    fn remove(&self, entry: &Arc<Entry>) {
        let Some((plural, group)) = entry.key().split_once('.') else {
            return;
        };
        if let Some(names) = self.names.lock().get_mut(group) {
            names.remove(entry.key());
        }
        if let Some(catalog) = self.catalog.upgrade()
            && catalog
                .table()
                .find(group, plural)
                .is_some_and(|serving| serving.kind().custom)
        {
            catalog.remove(group, plural);
        }
    }
}

/// The names others of a group hold.
fn taken(names: &Names, group: &str, but: &str) -> Taken {
    let mut taken = Taken::default();
    if let Some(group) = names.lock().get(group) {
        for (_, held) in group.iter().filter(|(definition, _)| *definition != but) {
            taken.add(held);
        }
    }
    taken
}

impl Observer for CustomKinds {
    fn reset(&self, snapshot: &Snapshot) {
        for entry in snapshot.range("", None) {
            self.put(entry);
        }
    }

    fn changed(&self, event: &Arc<Event>) {
        match event.kind {
            EventKind::Deleted => self.remove(&event.entry),
            _ => self.put(&event.entry),
        }
    }
}

//! CustomResourceDefinitions: kinds that come and go while the server runs.
//!
//! A definition is served from the moment its write is acknowledged, because the catalog is
//! changed inside the commit. Deleting the instances of a deleted one is a controller's work.

mod columns;
mod conversion;
mod declared;
mod kind;
mod names;
mod objects;
mod shape;
mod strategy;
mod subresources;
mod warm;

pub use strategy::CLEANUP_FINALIZER;

use super::catalog::{Catalog, Serving};
use super::served::{Served, parse_entry};
use crate::outbound::Outbound;
use bareboat_api::{Map, Value};
use bareboat_schema::crd::Definition;
use bareboat_storage::{Entry, Event, EventKind, Observer, Snapshot, Store, WeakStore};
use names::HeldNames;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use strategy::DefinitionStrategy;
use warm::Warm;

/// Where definitions are stored.
pub const STORE: &str = "apiextensions.k8s.io/customresourcedefinitions";

/// Keeps the catalog in step with the definitions in the store.
pub(crate) struct CustomKinds {
    server: Parts,
    warm: Arc<Warm>,
    names: Names,
    /// What each definition that is served said when it was last looked at.
    said: Mutex<HashMap<String, u64>>,
}

/// Parts of the server. They are its own: the store holds whoever observes it, and would hold itself open by them.
struct Parts {
    catalog: Weak<Catalog>,
    store: WeakStore,
    /// Calls converters.
    outbound: Weak<Outbound>,
}

impl Parts {
    /// The parts, unless the server is gone.
    fn upgrade(&self) -> Option<(Arc<Catalog>, Store, Arc<Outbound>)> {
        Some((
            self.catalog.upgrade()?,
            self.store.upgrade()?,
            self.outbound.upgrade()?,
        ))
    }
}

/// The names definitions hold, shared with the strategy that gives them out.
type Names = Arc<Mutex<HeldNames>>;

impl CustomKinds {
    pub(crate) fn new(
        catalog: &Arc<Catalog>,
        store: &Store,
        outbound: &Arc<Outbound>,
    ) -> CustomKinds {
        CustomKinds {
            server: Parts {
                catalog: Arc::downgrade(catalog),
                store: store.downgrade(),
                outbound: Arc::downgrade(outbound),
            },
            warm: Warm::new(),
            names: Names::default(),
            said: Mutex::default(),
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
            let mut held = self.names.lock();
            held.hold(&definition.group, &definition.name, names);
        }
        let Some((catalog, store, outbound)) = self.server.upgrade() else {
            return;
        };
        if !definition.established {
            self.said.lock().remove(entry.key());
            catalog.remove(&definition.group, &definition.names.plural);
            return;
        }
        let said = substance(&value);
        if self.said.lock().insert(entry.key().to_owned(), said) == Some(said) {
            // Watches go on, and what was compiled and converted stays.
            set_terminating(&catalog, &definition);
            return;
        }
        let mut kind = kind::of(&definition, &value, entry, &self.warm, &outbound);
        // A version that built-in kinds of the group have is theirs alone.
        for version in &mut kind.versions {
            let built_in = catalog
                .table()
                .has_built_in(&definition.group, &version.name);
            version.served &= !built_in;
        }
        let connections = subresources::add(&mut kind, &value);
        let taken_by_built_in = catalog
            .table()
            .find(&definition.group, &kind.names.plural)
            .is_some_and(|serving| !serving.kind().custom);
        if !taken_by_built_in {
            let served = Served::new(kind, &store).with_connections(connections);
            catalog.insert(Serving::Stored(Arc::new(served)));
        }
    }

    fn remove(&self, entry: &Arc<Entry>) {
        let Some((plural, group)) = entry.key().split_once('.') else {
            return;
        };
        self.said.lock().remove(entry.key());
        self.names.lock().release(group, entry.key());
        if let Some(catalog) = self.server.catalog.upgrade()
            && catalog
                .table()
                .find(group, plural)
                .is_some_and(|serving| serving.kind().custom)
        {
            catalog.remove(group, plural);
        }
    }
}

/// A hash of everything in a definition that its kind is made of: not of labels, managers and most of its status.
fn substance(crd: &Value) -> u64 {
    let mut digest = Sha256::new();
    let mut add = |part: Option<&Value>| {
        let bytes = part.map(Value::to_json).unwrap_or_default();
        digest.update((bytes.len() as u64).to_le_bytes());
        digest.update(bytes);
    };
    add(crd.at(&["metadata", "uid"]));
    add(crd.get("spec"));
    add(crd.at(&["status", "acceptedNames"]));
    let annotations = crd
        .at(&["metadata", "annotations"])
        .and_then(Value::as_object);
    for (key, text) in annotations.into_iter().flat_map(Map::iter) {
        // What kubectl remembers is no more than what is said elsewhere.
        if key != "kubectl.kubernetes.io/last-applied-configuration" {
            add(Some(&Value::string(key)));
            add(Some(text));
        }
    }
    let digest = digest.finalize();
    let first: [u8; 8] = digest[..8].try_into().expect("a digest has 32 bytes");
    u64::from_le_bytes(first)
}

/// Whether new objects are refused, from now on. Watches go on: they must see the objects go.
fn set_terminating(catalog: &Catalog, definition: &Definition) {
    let table = catalog.table();
    let found = table.find(&definition.group, &definition.names.plural);
    if let Some(Serving::Stored(served)) = found
        && served.kind.custom
        && served.kind.terminating != definition.terminating
    {
        let verbs = kind::verbs(definition.terminating);
        let changed = served.with_verbs(verbs, definition.terminating);
        catalog.insert(Serving::Stored(Arc::new(changed)));
    }
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

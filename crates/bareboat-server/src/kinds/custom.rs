//! CustomResourceDefinitions: kinds that are added and removed while the server runs.
//!
//! A definition is served from the moment its write is acknowledged, because the catalog is changed inside the commit.
//! A controller deletes the instances of a deleted definition.

mod columns;
mod conversion;
mod declared;
mod drafts;
mod fixed;
mod kind;
mod names;
mod objects;
mod shape;
mod strategy;
mod subresources;
mod warm;

pub use columns::of as columns_of_version;
pub use fixed::kind_of_definition;
pub use strategy::CLEANUP_FINALIZER;

use super::catalog::{Backing, Catalog};
use super::stored_kind::{StoredKind, parse_entry};
use crate::outbound::Outbound;
use bareboat_api::kind::Origin;
use bareboat_api::{Map, Value};
use bareboat_schema::crd::Definition;
use bareboat_storage::{Entry, Event, EventKind, Observer, Snapshot, Store, WeakStore};
use drafts::{Draft, Drafts};
use names::HeldNames;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use strategy::DefinitionStrategy;
use warm::Warm;

/// The store resource of definitions.
pub const STORE: &str = super::DEFINITIONS;

/// Updates the catalog when definitions in the store change.
pub(crate) struct CustomKinds {
    server: Parts,
    warm: Arc<Warm>,
    names: Names,
    drafts: Drafts,
    /// A hash of each served definition, as last seen.
    said: Mutex<HashMap<String, u64>>,
}

/// Weak references to parts of the server. The store holds its observers, so strong references would keep it open
/// forever.
struct Parts {
    catalog: Weak<Catalog>,
    store: WeakStore,
    /// Calls converters.
    outbound: Weak<Outbound>,
}

impl Parts {
    /// Returns the parts, unless the server is gone.
    fn upgrade(&self) -> Option<(Arc<Catalog>, Store, Arc<Outbound>)> {
        Some((
            self.catalog.upgrade()?,
            self.store.upgrade()?,
            self.outbound.upgrade()?,
        ))
    }
}

/// The resource and kind names that definitions occupy, by group; the strategy of CustomResourceDefinition checks new
/// names against them (condition `NamesAccepted`).
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
            drafts: Drafts::default(),
            said: Mutex::default(),
        }
    }

    /// Returns the strategy of CustomResourceDefinition.
    pub(crate) fn strategy(&self) -> DefinitionStrategy {
        DefinitionStrategy::new(self.names.clone(), self.drafts.clone())
    }

    fn put(&self, entry: &Arc<Entry>) {
        let draft = match self.drafts.find(entry) {
            Some(draft) => draft,
            None => match parse_entry(entry) {
                Ok(object) => Arc::new(Draft::new(object.into())),
                Err(_) => return,
            },
        };
        let Draft {
            value,
            definition,
            substance,
        } = &*draft;
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
        let said = self.said.lock().insert(entry.key().to_owned(), *substance);
        if said == Some(*substance) {
            // Watches go on, and compiled and converted values stay.
            set_terminating(&catalog, definition);
            return;
        }
        let mut kind = kind::of(definition, value, entry, &self.warm, &outbound);
        // A version that built-in kinds of the group have is not served for custom kinds.
        for version in &mut kind.versions {
            let built_in = catalog
                .table()
                .has_fixed_routes(&definition.group, &version.name);
            version.served &= !built_in;
        }
        let connections = subresources::add(&mut kind, value);
        let taken_by_built_in = catalog
            .table()
            .find(&definition.group, &kind.names.plural)
            .is_some_and(|backing| backing.kind().origin == Origin::BuiltIn);
        if !taken_by_built_in {
            let served = StoredKind::new(kind, &store).with_connections(connections);
            catalog.insert(Backing::Stored(Arc::new(served)));
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
                .is_some_and(|backing| backing.kind().origin == Origin::Custom)
        {
            catalog.remove(group, plural);
        }
    }
}

/// Hashes the parts of a definition that its kind is made of: not labels, managers and most of the status.
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
        // kubectl's copy repeats the other fields.
        if key != "kubectl.kubernetes.io/last-applied-configuration" {
            add(Some(&Value::string(key)));
            add(Some(text));
        }
    }
    let digest = digest.finalize();
    let first: [u8; 8] = digest[..8].try_into().expect("a digest has 32 bytes");
    u64::from_le_bytes(first)
}

/// Sets whether new objects are refused. Watches go on: they must report the deletions.
fn set_terminating(catalog: &Catalog, definition: &Definition) {
    let table = catalog.table();
    let found = table.find(&definition.group, &definition.names.plural);
    if let Some(Backing::Stored(served)) = found
        && served.kind.origin == Origin::Custom
        && served.kind.terminating != definition.terminating
    {
        let verbs = kind::verbs(definition.terminating);
        let changed = served.with_verbs(verbs, definition.terminating);
        catalog.insert(Backing::Stored(Arc::new(changed)));
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

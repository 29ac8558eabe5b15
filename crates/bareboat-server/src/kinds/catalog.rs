//! The table of served kinds: one immutable map, replaced on each change.

use super::computed::Computed;
use super::stored_kind::StoredKind;
use arc_swap::ArcSwap;
use bareboat_api::Str;
use bareboat_api::kind::{Kind, Routes};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;

/// How a resource is served: from the store, or by functions.
#[derive(Clone)]
pub enum Backing {
    /// Objects in the store.
    Stored(Arc<StoredKind>),
    /// Functions of the program that embeds the server.
    Computed(Arc<Computed>),
}

bareboat_api::opaque_debug!(Backing);

impl Backing {
    /// Returns the data of the kind.
    pub fn kind(&self) -> &Arc<Kind> {
        match self {
            Backing::Stored(served) => &served.kind,
            Backing::Computed(computed) => computed.kind(),
        }
    }
}

/// All kinds at one point in time.
#[derive(Clone, Default)]
pub struct Table {
    groups: imbl::OrdMap<Str, imbl::OrdMap<Str, Backing>>,
    generation: u64,
}

bareboat_api::opaque_debug!(Table);

impl Table {
    /// Returns the resource with this plural in a group.
    pub fn find(&self, group: &str, plural: &str) -> Option<&Backing> {
        self.groups.get(group)?.get(plural)
    }

    /// Returns whether a version of a group has fixed routes, so that unknown paths in it get a Status.
    pub fn has_fixed_routes(&self, group: &str, version: &str) -> bool {
        self.groups.get(group).is_some_and(|kinds| {
            kinds.values().any(|backing| {
                let kind = backing.kind();
                kind.conventions.routes == Routes::Fixed
                    && kind.version(version).is_some_and(|version| version.served)
            })
        })
    }

    /// Returns any kind of a version of a group.
    pub fn any_of(&self, group: &str, version: &str) -> Option<&Arc<Kind>> {
        let mut kinds = self.groups.get(group)?.values().map(Backing::kind);
        kinds.find(|kind| kind.version(version).is_some_and(|version| version.served))
    }

    /// Iterates over all kinds, sorted by group and plural.
    pub fn iter(&self) -> impl Iterator<Item = &Backing> {
        self.groups.values().flat_map(|kinds| kinds.values())
    }

    /// Returns the kind of that group and name, for owner references.
    pub fn find_kind(&self, group: &str, kind: &str) -> Option<&Backing> {
        self.groups
            .get(group)?
            .values()
            .find(|backing| backing.kind().names.kind == kind)
    }

    /// Returns a number that changes whenever the table does.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the groups with at least one kind.
    pub fn groups(&self) -> BTreeSet<&str> {
        self.groups.keys().map(Str::as_str).collect()
    }
}

/// The table as it was when it was asked for. Keep it for a short time: it keeps kinds alive that were replaced since.
pub struct CurrentTable(arc_swap::Guard<Arc<Table>>);

bareboat_api::opaque_debug!(CurrentTable);

impl std::ops::Deref for CurrentTable {
    type Target = Table;

    fn deref(&self) -> &Table {
        &self.0
    }
}

/// The current table, and the lock for changing it.
#[derive(Default)]
pub struct Catalog {
    table: ArcSwap<Table>,
    writing: Mutex<()>,
}

bareboat_api::opaque_debug!(Catalog);

impl Catalog {
    /// Returns the current table.
    pub fn table(&self) -> CurrentTable {
        CurrentTable(self.table.load())
    }

    /// Adds a kind, or replaces one with the same name. Watches of the replaced kind end unless the new kind continues
    /// them.
    pub fn insert(&self, backing: Backing) {
        let _writing = self.writing.lock();
        let mut table = Table::clone(&self.table.load());
        table.generation += 1;
        let (group, plural) = {
            let kind = backing.kind();
            (kind.group.clone(), kind.names.plural.clone())
        };
        let kinds = table.groups.entry(group).or_default();
        let replaced = kinds.insert(plural, backing.clone());
        self.table.store(Arc::new(table));
        match (&replaced, &backing) {
            (Some(Backing::Stored(old)), Backing::Stored(new)) if old.goes_on_in(new) => {}
            _ => retire(replaced),
        }
    }

    /// Removes a kind; its watches end.
    pub fn remove(&self, group: &str, plural: &str) {
        let _writing = self.writing.lock();
        let mut table = Table::clone(&self.table.load());
        let Some(kinds) = table.groups.get_mut(group) else {
            return;
        };
        let removed = kinds.remove(plural);
        if kinds.is_empty() {
            table.groups.remove(group);
        }
        table.generation += 1;
        self.table.store(Arc::new(table));
        retire(removed);
    }
}

fn retire(backing: Option<Backing>) {
    if let Some(Backing::Stored(served)) = backing {
        served.retire();
    }
}

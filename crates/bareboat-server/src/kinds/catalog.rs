//! The table of kinds that are served: one immutable map, swapped when something changes.

use super::computed::Computed;
use super::served::Served;
use arc_swap::ArcSwap;
use bareboat_api::Str;
use bareboat_api::kind::Kind;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Who answers for a resource.
#[derive(Clone)]
pub enum Serving {
    /// Objects out of the store.
    Stored(Arc<Served>),
    /// A program.
    Computed(Arc<Computed>),
}

impl Serving {
    /// The data of the kind.
    pub fn kind(&self) -> &Arc<Kind> {
        match self {
            Serving::Stored(served) => &served.kind,
            Serving::Computed(computed) => computed.kind(),
        }
    }
}

/// All kinds at one moment.
#[derive(Clone, Default)]
pub struct Table {
    groups: imbl::OrdMap<Str, imbl::OrdMap<Str, Serving>>,
    generation: u64,
}

impl Table {
    /// Who serves a plural of a group.
    pub fn find(&self, group: &str, plural: &str) -> Option<&Serving> {
        self.groups.get(group)?.get(plural)
    }

    /// Whether a version of a group has a built-in kind, so that bad routes inside it get a Status.
    pub fn has_built_in(&self, group: &str, version: &str) -> bool {
        self.groups.get(group).is_some_and(|kinds| {
            kinds.values().any(|serving| {
                let kind = serving.kind();
                !kind.custom && kind.version(version).is_some_and(|version| version.served)
            })
        })
    }

    /// Any kind that a version of a group has.
    pub fn any_of(&self, group: &str, version: &str) -> Option<&Arc<Kind>> {
        let mut kinds = self.groups.get(group)?.values().map(Serving::kind);
        kinds.find(|kind| kind.version(version).is_some_and(|version| version.served))
    }

    /// All kinds, sorted by group and plural.
    pub fn iter(&self) -> impl Iterator<Item = &Serving> {
        self.groups.values().flat_map(|kinds| kinds.values())
    }

    /// The kind of that group and name, for owners and the like.
    pub fn find_kind(&self, group: &str, kind: &str) -> Option<&Serving> {
        self.groups
            .get(group)?
            .values()
            .find(|serving| serving.kind().names.kind == kind)
    }

    /// Changes whenever the table does.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The groups with at least one kind.
    pub fn groups(&self) -> BTreeSet<&str> {
        self.groups.keys().map(Str::as_str).collect()
    }
}

/// The table and the right to change it.
#[derive(Default)]
pub struct Catalog {
    table: ArcSwap<Table>,
    writing: Mutex<()>,
}

impl Catalog {
    /// The table as it is now.
    pub fn table(&self) -> arc_swap::Guard<Arc<Table>> {
        self.table.load()
    }

    /// Puts a kind in, in place of one with the same name, whose watches end unless they go on in the new one.
    pub fn insert(&self, serving: Serving) {
        let _writing = self.writing.lock();
        let mut table = Table::clone(&self.table.load());
        table.generation += 1;
        let (group, plural) = {
            let kind = serving.kind();
            (kind.group.clone(), kind.names.plural.clone())
        };
        let kinds = table.groups.entry(group).or_default();
        let replaced = kinds.insert(plural, serving.clone());
        self.table.store(Arc::new(table));
        match (&replaced, &serving) {
            (Some(Serving::Stored(old)), Serving::Stored(new)) if old.goes_on_in(new) => {}
            _ => retire(replaced),
        }
    }

    /// Takes a kind out; its watches end.
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

fn retire(serving: Option<Serving>) {
    if let Some(Serving::Stored(served)) = serving {
        served.retire();
    }
}

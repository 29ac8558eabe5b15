//! The names that definitions hold, with counts, so that checking one definition takes the same time however many
//! exist.

use bareboat_api::{Value, value};
use bareboat_schema::crd::Taken;
use std::collections::{BTreeSet, HashMap};

/// The names that definitions hold, by group.
#[derive(Default)]
pub(super) struct HeldNames {
    groups: HashMap<String, Group>,
}

#[derive(Default)]
struct Group {
    /// The names of each definition.
    held: HashMap<String, Held>,
    /// How many definitions hold each resource name, and each kind name.
    resources: HashMap<String, usize>,
    kinds: HashMap<String, usize>,
}

/// The names of one definition: those of its resource, and those of its kinds.
#[derive(Default)]
struct Held {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

impl Held {
    fn of(names: &Value) -> Held {
        let text = |key: &str| names.get(key).and_then(Value::as_str).map(str::to_owned);
        let short = names.get("shortNames").and_then(Value::as_array);
        let short = short.unwrap_or(&[]).iter().filter_map(Value::as_str);
        Held {
            resources: [text("plural"), text("singular")]
                .into_iter()
                .flatten()
                .chain(short.map(str::to_owned))
                .collect(),
            kinds: [text("kind"), text("listKind")]
                .into_iter()
                .flatten()
                .collect(),
        }
    }
}

impl HeldNames {
    /// Records the names of a definition.
    pub(super) fn hold(&mut self, group: &str, definition: &str, names: &Value) {
        self.release(group, definition);
        let held = Held::of(names);
        let group = self.groups.entry(group.to_owned()).or_default();
        for (names, counts) in [
            (&held.resources, &mut group.resources),
            (&held.kinds, &mut group.kinds),
        ] {
            for name in names {
                *counts.entry(name.clone()).or_default() += 1;
            }
        }
        group.held.insert(definition.to_owned(), held);
    }

    /// Removes the names of a definition.
    pub(super) fn release(&mut self, group: &str, definition: &str) {
        let Some(of_group) = self.groups.get_mut(group) else {
            return;
        };
        let Some(held) = of_group.held.remove(definition) else {
            return;
        };
        for (names, counts) in [
            (&held.resources, &mut of_group.resources),
            (&held.kinds, &mut of_group.kinds),
        ] {
            for name in names {
                match counts.get_mut(name) {
                    Some(count) if *count > 1 => *count -= 1,
                    _ => {
                        counts.remove(name);
                    }
                }
            }
        }
        if of_group.held.is_empty() {
            self.groups.remove(group);
        }
    }

    /// Returns those of the wanted names that other definitions hold.
    pub(super) fn taken(&self, group: &str, definition: &str, wanted: &Value) -> Taken {
        let mut taken = Taken::default();
        let Some(group) = self.groups.get(group) else {
            return taken;
        };
        let own = group.held.get(definition);
        let others = |counts: &HashMap<String, usize>, name: &String, is_own: bool| {
            counts.get(name).copied().unwrap_or(0) > usize::from(is_own)
        };
        let wanted = Held::of(wanted);
        for name in wanted.resources {
            let is_own = own.is_some_and(|own| own.resources.contains(&name));
            if others(&group.resources, &name, is_own) {
                taken.add(&value!({"plural": (name.as_str())}));
            }
        }
        for name in wanted.kinds {
            let is_own = own.is_some_and(|own| own.kinds.contains(&name));
            if others(&group.kinds, &name, is_own) {
                taken.add(&value!({"kind": (name.as_str())}));
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests;

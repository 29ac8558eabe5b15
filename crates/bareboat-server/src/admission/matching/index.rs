//! An index over rules: which of many webhooks or policies may match a request at all.
//!
//! Almost all requests match none. They pay for at most four lookups in hash tables.

use super::rule::{Operations, Rule, Target};
use ahash::HashMap;
use bareboat_api::Str;

/// An item, and the operations one of its rules is about.
type Entry = (u32, Operations);

/// Items by the groups and resources of their rules.
#[derive(Debug, Default)]
pub(crate) struct Index {
    groups: HashMap<Str, Resources>,
    any_group: Resources,
}

#[derive(Debug, Default)]
struct Resources {
    named: HashMap<Str, Vec<Entry>>,
    any: Vec<Entry>,
}

impl Resources {
    fn add(&mut self, resource: &Str, entry: Entry) {
        let list = match resource.as_str() {
            "*" => &mut self.any,
            _ => self.named.entry(resource.clone()).or_default(),
        };
        list.push(entry);
    }

    fn lists(&self, resource: &str) -> [&[Entry]; 2] {
        let named = self.named.get(resource);
        [named.map_or(&[], Vec::as_slice), &self.any]
    }
}

impl Index {
    /// Indexes items by their rules, in order; an item with `None` may match every request.
    pub(crate) fn new<'r>(items: impl IntoIterator<Item = Option<&'r [Rule]>>) -> Index {
        let mut index = Index::default();
        let any = Str::const_new("*");
        for (at, rules) in items.into_iter().enumerate() {
            let at = u32::try_from(at).unwrap_or(u32::MAX);
            let Some(rules) = rules else {
                index.add(&any, &any, (at, Operations::ALL));
                continue;
            };
            for rule in rules {
                for group in rule.groups() {
                    for resource in rule.resources() {
                        index.add(group, resource, (at, rule.operations()));
                    }
                }
            }
        }
        index
    }

    fn add(&mut self, group: &Str, resource: &Str, entry: Entry) {
        let resources = match group.as_str() {
            "*" => &mut self.any_group,
            _ => self.groups.entry(group.clone()).or_default(),
        };
        resources.add(resource, entry);
    }

    /// Returns the items that may match a request, in order. `aliases` are other groups with the same objects.
    pub(crate) fn candidates(&self, target: &Target<'_>, aliases: &[Str]) -> Vec<usize> {
        let mut found = Vec::new();
        let mut collect = |resources: &Resources| {
            for (at, operations) in resources.lists(target.place.resource).concat() {
                if operations.has(target.operation) {
                    found.push(at as usize);
                }
            }
        };
        collect(&self.any_group);
        let groups = std::iter::once(target.place.group).chain(aliases.iter().map(Str::as_str));
        for group in groups {
            if let Some(resources) = self.groups.get(group) {
                collect(resources);
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Returns whether some item may match a request.
    pub(crate) fn concerns(&self, target: &Target<'_>, aliases: &[Str]) -> bool {
        let has = |resources: &Resources| {
            let lists = resources.lists(target.place.resource);
            let mut entries = lists.into_iter().flatten();
            entries.any(|(_, operations)| operations.has(target.operation))
        };
        let named = |group: &str| self.groups.get(group).is_some_and(has);
        has(&self.any_group)
            || named(target.place.group)
            || aliases.iter().any(|group| named(group))
    }
}

#[cfg(test)]
mod tests;

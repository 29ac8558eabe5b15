//! Which owners the objects of other servers name, as far as these were listed. It tells which deletions must wait for a
//! server that does not answer.

use crate::garbage::graph::{Graph, Uid};
use crate::remote::GroupResource;
use std::collections::{HashMap, HashSet};

/// The owners that objects of other servers name, by resource.
#[derive(Default)]
pub(in crate::garbage) struct Names(HashMap<GroupResource, Named>);

/// The owners that the objects of one resource name.
#[derive(Default)]
struct Named {
    /// Those of the last complete list.
    listed: HashSet<Uid>,
    /// Those that were found since that list began.
    added: HashSet<Uid>,
}

impl Named {
    fn has(&self, uid: Uid) -> bool {
        self.listed.contains(&uid) || self.added.contains(&uid)
    }
}

impl Graph {
    /// A list of all objects of a resource begins.
    pub(super) fn begin_names(&mut self, resource: &GroupResource) {
        if let Some(named) = self.named_remotely.0.get_mut(resource) {
            let added = std::mem::take(&mut named.added);
            named.listed.extend(added);
        }
    }

    /// The list of all objects of a resource is complete; they name these owners.
    pub(super) fn end_names(&mut self, resource: &GroupResource, uids: &[&str]) {
        let listed: HashSet<Uid> = uids.iter().map(|uid| self.hash(uid)).collect();
        let named = self.named_remotely.0.entry(resource.clone()).or_default();
        named.listed = listed;
        if named.listed.is_empty() && named.added.is_empty() {
            self.named_remotely.0.remove(resource);
        }
    }

    /// An object of a resource names this owner.
    pub(super) fn add_name(&mut self, resource: &GroupResource, uid: &str) {
        let uid = self.hash(uid);
        let named = self.named_remotely.0.entry(resource.clone()).or_default();
        named.added.insert(uid);
    }

    /// Forgets what the objects of other resources named.
    pub(super) fn keep_names(&mut self, is_kept: impl Fn(&GroupResource) -> bool) {
        let names = &mut self.named_remotely.0;
        names.retain(|resource, _| is_kept(resource));
    }

    /// Returns a resource that meets a condition and whose objects named this owner.
    pub(super) fn named_in(
        &self,
        uid: &str,
        is_meant: impl Fn(&GroupResource) -> bool,
    ) -> Option<GroupResource> {
        if self.named_remotely.0.is_empty() {
            return None;
        }
        let uid = self.hash(uid);
        let mut names = self.named_remotely.0.iter();
        let found = names.find(|(resource, named)| named.has(uid) && is_meant(resource));
        found.map(|(resource, _)| resource.clone())
    }

    /// Whether objects of other servers named this owner when they were listed.
    pub(in crate::garbage) fn is_named_remotely(&self, uid: &str) -> bool {
        self.named_in(uid, |_| true).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bareboat_api::Str;

    fn resource(plural: &str) -> GroupResource {
        (Str::new("example.com"), Str::new(plural))
    }

    #[test]
    fn a_complete_list_replaces_what_was_known_before_it_began() {
        let (mut graph, ships) = (Graph::default(), resource("ships"));
        graph.end_names(&ships, &["a"]);
        graph.add_name(&ships, "b");
        graph.begin_names(&ships);
        // Another search finds this one while the list is under way.
        graph.add_name(&ships, "c");
        for uid in ["a", "b", "c"] {
            assert!(graph.is_named_remotely(uid), "the list may fail: {uid}");
        }
        graph.end_names(&ships, &["d"]);
        for (uid, named) in [("a", false), ("b", false), ("c", true), ("d", true)] {
            assert_eq!(graph.is_named_remotely(uid), named, "{uid}");
        }
    }

    #[test]
    fn names_belong_to_a_resource() {
        let (mut graph, ships, boats) = (Graph::default(), resource("ships"), resource("boats"));
        graph.end_names(&ships, &["a"]);
        graph.end_names(&boats, &["b"]);
        assert_eq!(graph.named_in("a", |it| *it == ships), Some(ships.clone()));
        assert_eq!(graph.named_in("a", |it| *it == boats), None);
        graph.keep_names(|it| *it == boats);
        assert!(!graph.is_named_remotely("a"), "ships do not exist any more");
        assert!(graph.is_named_remotely("b"));
    }

    #[test]
    fn lost_events_do_not_make_the_collector_forget_what_other_servers_named() {
        let (mut graph, ships) = (Graph::default(), resource("ships"));
        graph.end_names(&ships, &["a"]);
        graph.clear();
        assert!(graph.is_named_remotely("a"));
    }
}

//! Garbage collection: deletes objects whose owners are gone.
//!
//! The graph holds references to owners, and nothing about objects without owners. Whether an owner exists is looked up in
//! the store. `decide` decides what happens to an object, and `collector` does it.

mod collector;
mod decide;
mod graph;
mod remote;
mod report;

pub(crate) use collector::GarbageCollector;
pub(crate) use graph::{Graph, Node};

use crate::feed::Listener;
use crate::kinds::{DEFINITIONS, is_deleting, may_have_owners, of_store};
use crate::queue::Queue;
use bareboat_server::{Server, aggregation};
use bareboat_storage::{Entry, Event, EventKind, Owner, Resource, Store};
use parking_lot::Mutex;
use std::borrow::Cow;
use std::sync::Arc;

/// The finalizer of an owner that is deleted with orphan propagation: its dependents stay.
const ORPHAN: &str = "orphan";
/// The finalizer of an owner that is deleted with foreground propagation: its dependents go first.
const FOREGROUND: &str = "foregroundDeletion";

/// Work of the garbage collector for one object of the graph.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Job {
    /// Check whether the owners of an object exist.
    Check(Node),
    /// Remove an owner from its dependents, then finish its deletion.
    Orphan(Node),
    /// Finish the deletion of an owner if its dependents are gone.
    Foreground(Node),
    /// Check the objects of other servers that name owners.
    Remote,
}

/// What listener and collector share: the graph of owners, the queue of jobs, and searches in other servers.
pub(crate) struct Shared {
    pub(crate) graph: Mutex<Graph>,
    pub(crate) queue: Arc<Queue<Job>>,
    searches: Arc<remote::Searches>,
}

/// Keeps the graph up to date.
pub(crate) struct GarbageListener {
    shared: Arc<Shared>,
    server: Server,
}

impl GarbageListener {
    /// Objects with a time to live are not collected.
    fn is_ignored(&self, resource: &Resource) -> bool {
        let table = self.server.catalog().table();
        of_store(&table, resource.name()).is_some_and(|kind| kind.policy.ttl_seconds.is_some())
    }

    /// Adds jobs for an object that exists.
    fn on_present(&self, graph: &mut Graph, node: &Node, entry: &Entry, check_owners: bool) {
        if check_owners {
            self.shared.queue.add(Job::Check(node.clone()));
        }
        if !is_deleting(entry) {
            return;
        }
        let facets = entry.facets();
        if facets.has_finalizer(ORPHAN) {
            self.shared.queue.add(Job::Orphan(node.clone()));
        }
        if facets.has_finalizer(FOREGROUND) {
            graph.wait(&facets.uid, node.clone());
            for dependent in graph.dependents(&facets.uid) {
                self.shared.queue.add(Job::Check(dependent));
            }
            self.shared.queue.add(Job::Foreground(node.clone()));
        }
    }

    /// Adds jobs for owners that waited for a dependent which is gone or has other owners now.
    fn wake_waiting(&self, graph: &Graph, owners: &[Owner]) {
        for owner in owners.iter().filter(|owner| owner.block_owner_deletion) {
            if let Some(node) = graph.waiting(&owner.uid) {
                self.shared.queue.add(Job::Foreground(node.clone()));
            }
        }
    }

    /// Checks objects again that could not be checked because a kind was unknown.
    fn kinds_changed(&self) {
        let mut graph = self.shared.graph.lock();
        for node in graph.take_unresolved() {
            if let Some(entry) = node.entry() {
                self.on_present(&mut graph, &node, &entry, may_have_owners(&entry));
            }
        }
    }
}

/// The owners of an object. Metadata is not parsed if there are none.
fn owners(entry: &Entry) -> Cow<'_, [Owner]> {
    if !may_have_owners(entry) {
        return Cow::Borrowed(&[]);
    }
    match entry.glance() {
        Cow::Borrowed(facets) => Cow::Borrowed(&facets.owners),
        Cow::Owned(facets) => Cow::Owned(facets.owners.into_vec()),
    }
}

impl Listener for GarbageListener {
    fn reset(&mut self, store: &Store) {
        let shared = self.shared.clone();
        shared.queue.add(Job::Remote);
        let mut graph = shared.graph.lock();
        graph.clear();
        let mut found = Vec::new();
        for resource in store.resources() {
            if self.is_ignored(&resource) {
                continue;
            }
            for entry in resource.snapshot().range("", None) {
                let owners = owners(entry);
                if owners.is_empty() && !is_deleting(entry) {
                    continue;
                }
                let node = Node::new(&resource, entry);
                graph.link(&node, &owners);
                let owned = !owners.is_empty();
                drop(owners);
                found.push((node, entry.clone(), owned));
            }
        }
        // Only after all references are in the graph.
        for (node, entry, owned) in found {
            self.on_present(&mut graph, &node, &entry, owned);
        }
    }

    fn on_event(&mut self, resource: &Arc<Resource>, event: &Event) {
        if resource.name() == aggregation::STORE {
            self.shared.searches.forget_silence();
            self.shared.queue.add(Job::Remote);
        }
        if matches!(resource.name(), DEFINITIONS | aggregation::STORE) {
            self.kinds_changed();
        }
        let entry = &event.entry;
        let gone = event.kind == EventKind::Deleted;
        // Every write comes here, and this searches the whole object.
        let going = gone || is_deleting(entry);
        if going && (self.shared.graph.lock()).is_named_remotely(&entry.facets().uid) {
            self.shared.queue.add(Job::Remote);
        }
        let none = || Cow::Borrowed(&[][..]);
        let before = event.prev.as_deref().map_or_else(none, owners);
        let after = if gone { none() } else { owners(entry) };
        let linked = !before.is_empty() || !after.is_empty();
        if !linked && !going {
            return;
        }
        let shared = self.shared.clone();
        if gone && !linked && shared.graph.lock().is_empty() {
            return;
        }
        if linked && self.is_ignored(resource) {
            return;
        }
        let node = Node::new(resource, entry);
        let mut graph = shared.graph.lock();
        let changed = before != after;
        if changed {
            graph.unlink(&node, &before);
            graph.link(&node, &after);
        }
        // An object that was created again under the same key is another object.
        let fresh = changed || event.kind == EventKind::Added;
        if gone {
            graph.gone(entry, &node);
            for dependent in graph.dependents(&entry.facets().uid) {
                self.shared.queue.add(Job::Check(dependent));
            }
        } else {
            let check_owners = fresh && !after.is_empty();
            self.on_present(&mut graph, &node, entry, check_owners);
        }
        if changed {
            self.wake_waiting(&graph, &before);
        }
    }
}

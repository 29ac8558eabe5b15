//! Garbage collection: what becomes of objects when their owners go.
//!
//! The graph knows who depends on whom, and nothing about objects without owners; whether an owner still exists is
//! looked up where it would be stored. What to do is decided in `judge`, done in `act`.

mod act;
mod graph;
mod judge;
mod report;

pub(crate) use act::Worker;
pub(crate) use graph::{Graph, Node};

use crate::feed::Listener;
use crate::kinds::{DEFINITIONS, is_deleting, may_have_owners, of_store};
use crate::queue::Queue;
use bareboat_server::Server;
use bareboat_storage::{Entry, Event, EventKind, Owner, Resource, Store};
use parking_lot::Mutex;
use std::borrow::Cow;
use std::sync::Arc;

/// The finalizer of an owner whose dependents are to stay.
const ORPHAN: &str = "orphan";
/// The finalizer of an owner whose dependents go first.
const FOREGROUND: &str = "foregroundDeletion";

/// Something to look at.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Job {
    /// An object with owners: are they still there?
    Judge(Node),
    /// An owner that waits until its dependents have forgotten it.
    Orphan(Node),
    /// An owner that waits until its dependents are gone.
    Foreground(Node),
}

/// What listener and workers share.
pub(crate) struct Shared {
    pub(crate) graph: Mutex<Graph>,
    pub(crate) queue: Arc<Queue<Job>>,
}

impl Shared {
    pub(crate) fn new() -> Arc<Shared> {
        Arc::new(Shared {
            graph: Mutex::default(),
            queue: Queue::new(),
        })
    }
}

/// Keeps the graph.
pub(crate) struct Ear {
    shared: Arc<Shared>,
    server: Server,
}

impl Ear {
    pub(crate) fn new(shared: Arc<Shared>, server: Server) -> Ear {
        Ear { shared, server }
    }

    /// Objects that end by themselves are not collected.
    fn is_ignored(&self, resource: &Resource) -> bool {
        let table = self.server.catalog().table();
        of_store(&table, resource.name()).is_some_and(|kind| kind.policy.ttl_seconds.is_some())
    }

    /// Looks at an object that is there.
    fn present(&self, graph: &mut Graph, node: &Node, entry: &Entry, judged: bool) {
        if judged {
            self.shared.queue.add(Job::Judge(node.clone()));
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
                self.shared.queue.add(Job::Judge(dependent));
            }
            self.shared.queue.add(Job::Foreground(node.clone()));
        }
    }

    /// Owners that waited for a dependent learn that it is gone or names others now.
    fn tell_waiting(&self, graph: &Graph, owners: &[Owner]) {
        for owner in owners.iter().filter(|owner| owner.block_owner_deletion) {
            if let Some(node) = graph.waiting(&owner.uid) {
                self.shared.queue.add(Job::Foreground(node.clone()));
            }
        }
    }

    /// Kinds came or went: what could not be resolved may be resolved now.
    fn kinds_changed(&self) {
        let mut graph = self.shared.graph.lock();
        for node in graph.take_unresolved() {
            if let Some(entry) = node.entry() {
                self.present(&mut graph, &node, &entry, may_have_owners(&entry));
            }
        }
    }
}

/// The owners of an object, without reading the metadata of one that has none.
fn owners(entry: &Entry) -> Cow<'_, [Owner]> {
    if !may_have_owners(entry) {
        return Cow::Borrowed(&[]);
    }
    match entry.glance() {
        Cow::Borrowed(facets) => Cow::Borrowed(&facets.owners),
        Cow::Owned(facets) => Cow::Owned(facets.owners.into_vec()),
    }
}

impl Listener for Ear {
    fn reset(&mut self, store: &Store) {
        let shared = self.shared.clone();
        let mut graph = shared.graph.lock();
        *graph = Graph::default();
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
        // Not before everybody is known who depends on somebody.
        for (node, entry, owned) in found {
            self.present(&mut graph, &node, &entry, owned);
        }
    }

    fn heard(&mut self, resource: &Arc<Resource>, event: &Event) {
        if resource.name() == DEFINITIONS {
            self.kinds_changed();
        }
        let entry = &event.entry;
        let gone = event.kind == EventKind::Deleted;
        let none = || Cow::Borrowed(&[][..]);
        let before = event.prev.as_deref().map_or_else(none, owners);
        let after = if gone { none() } else { owners(entry) };
        let linked = !before.is_empty() || !after.is_empty();
        if !linked && !gone && !is_deleting(entry) {
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
        // An incarnation under the same key is another object.
        let fresh = changed || event.kind == EventKind::Added;
        if gone {
            graph.gone(entry, &node);
            for dependent in graph.dependents(&entry.facets().uid) {
                self.shared.queue.add(Job::Judge(dependent));
            }
        } else {
            let judged = fresh && !after.is_empty();
            self.present(&mut graph, &node, entry, judged);
        }
        if changed {
            self.tell_waiting(&graph, &before);
        }
    }
}

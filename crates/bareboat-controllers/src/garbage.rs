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
    fn present(&self, graph: &mut Graph, node: &Node, entry: &Entry, fresh: bool) {
        if fresh && !owners(entry).is_empty() {
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
            self.shared.queue.add(Job::Foreground(node.clone()));
        }
    }

    /// Owners that wait for a dependent learn that it changed.
    fn tell_waiting(&self, graph: &Graph, owners: &[Owner]) {
        for owner in owners {
            if let Some(node) = graph.waiting(&owner.uid) {
                self.shared.queue.add(Job::Foreground(node.clone()));
            }
        }
    }

    /// Kinds came or went: what could not be resolved may be resolved now.
    fn kinds_changed(&self) {
        for node in self.shared.graph.lock().take_unresolved() {
            self.shared.queue.add(Job::Judge(node));
        }
    }
}

/// The owners of an object, without reading the metadata of one that has none.
fn owners(entry: &Entry) -> &[Owner] {
    if may_have_owners(entry) {
        &entry.facets().owners
    } else {
        &[]
    }
}

impl Listener for Ear {
    fn reset(&mut self, store: &Store) {
        let shared = self.shared.clone();
        let mut graph = shared.graph.lock();
        *graph = Graph::default();
        for resource in store.resources() {
            if self.is_ignored(&resource) {
                continue;
            }
            for entry in resource.snapshot().range("", None) {
                let owners = owners(entry);
                if owners.is_empty() && !is_deleting(entry) {
                    continue;
                }
                let node = Node::new(&resource, entry.key());
                graph.link(&node, owners);
                self.present(&mut graph, &node, entry, true);
            }
        }
    }

    fn heard(&mut self, resource: &Arc<Resource>, event: &Event) {
        if resource.name() == DEFINITIONS {
            self.kinds_changed();
        }
        let entry = &event.entry;
        let gone = event.kind == EventKind::Deleted;
        let before = event.prev.as_deref().map_or(&[][..], owners);
        let after = if gone { &[][..] } else { owners(entry) };
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
        let node = Node::new(resource, entry.key());
        let mut graph = shared.graph.lock();
        let changed = before != after;
        if changed {
            graph.unlink(&node, before);
            graph.link(&node, after);
        }
        // An incarnation under the same key is another object.
        let fresh = changed || event.kind == EventKind::Added;
        if gone {
            let uid = &entry.facets().uid;
            graph.gone(uid, &node);
            for dependent in graph.dependents(uid) {
                self.shared.queue.add(Job::Judge(dependent));
            }
        } else {
            self.present(&mut graph, &node, entry, fresh);
        }
        if linked {
            self.tell_waiting(&graph, before);
            self.tell_waiting(&graph, after);
        }
    }
}

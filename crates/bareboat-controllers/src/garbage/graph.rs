//! Who depends on whom.
//!
//! Only references are kept: an object that has no owners and is nobody's owner costs nothing here.

// What a resource holds changes, but the hash and equality of a node look only at which resource it is.
#![allow(clippy::mutable_key_type)]

use bareboat_storage::{Entry, Owner, Resource};
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The place of an object.
#[derive(Clone)]
pub(crate) struct Node {
    resource: Arc<Resource>,
    key: Arc<str>,
}

impl Node {
    pub(crate) fn new(resource: &Arc<Resource>, key: &str) -> Node {
        Node {
            resource: resource.clone(),
            key: key.into(),
        }
    }

    /// Where it is stored.
    pub(crate) fn store(&self) -> &str {
        self.resource.name()
    }

    /// What is there now.
    pub(crate) fn entry(&self) -> Option<Arc<Entry>> {
        self.resource.get(&self.key)
    }
}

impl PartialEq for Node {
    fn eq(&self, other: &Node) -> bool {
        Arc::ptr_eq(&self.resource, &other.resource) && self.key == other.key
    }
}

impl Eq for Node {}

impl Hash for Node {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.resource).hash(state);
        self.key.hash(state);
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.store(), self.key)
    }
}

/// Who depends on whom.
#[derive(Default)]
pub(crate) struct Graph {
    /// Objects by the uids of their owners, whether those exist or not.
    dependents: HashMap<Box<str>, HashSet<Node>>,
    /// Owners that wait until their dependents are gone, by uid.
    waiting: HashMap<Box<str>, Node>,
    /// Objects with owners of kinds nobody knows.
    unresolved: HashSet<Node>,
    /// Owners that went lately, while others still named them.
    departed: VecDeque<Box<str>>,
}

/// How many owners that went are remembered.
const REMEMBERED: usize = 256;

impl Graph {
    pub(crate) fn is_empty(&self) -> bool {
        self.dependents.is_empty() && self.waiting.is_empty()
    }

    /// Adds the references of an object.
    pub(crate) fn link(&mut self, node: &Node, owners: &[Owner]) {
        for owner in owners {
            match self.dependents.get_mut(&owner.uid) {
                Some(nodes) => {
                    nodes.insert(node.clone());
                }
                None => {
                    let nodes = HashSet::from([node.clone()]);
                    self.dependents.insert(owner.uid.clone(), nodes);
                }
            }
        }
    }

    /// Removes the references of an object.
    pub(crate) fn unlink(&mut self, node: &Node, owners: &[Owner]) {
        for owner in owners {
            if let Some(nodes) = self.dependents.get_mut(&owner.uid) {
                nodes.remove(node);
                if nodes.is_empty() {
                    self.dependents.remove(&owner.uid);
                }
            }
        }
    }

    /// Forgets an object that is gone; references to it stay.
    pub(crate) fn gone(&mut self, uid: &str, node: &Node) {
        self.waiting.remove(uid);
        self.unresolved.remove(node);
        if self.dependents.contains_key(uid) {
            if self.departed.len() == REMEMBERED {
                self.departed.pop_front();
            }
            self.departed.push_back(uid.into());
        }
    }

    /// Whether an owner of that uid was seen to go lately.
    pub(crate) fn has_departed(&self, uid: &str) -> bool {
        self.departed.iter().any(|known| **known == *uid)
    }

    /// The objects that name an owner.
    pub(crate) fn dependents(&self, uid: &str) -> Vec<Node> {
        self.dependents
            .get(uid)
            .map_or_else(Vec::new, |nodes| nodes.iter().cloned().collect())
    }

    /// An owner begins to wait for its dependents.
    pub(crate) fn wait(&mut self, uid: &str, node: Node) {
        self.waiting.insert(uid.into(), node);
    }

    /// The owner of that uid, if it waits.
    pub(crate) fn waiting(&self, uid: &str) -> Option<&Node> {
        self.waiting.get(uid)
    }

    /// An owner of this object is of a kind nobody knows.
    pub(crate) fn unresolved(&mut self, node: Node) {
        self.unresolved.insert(node);
    }

    /// Everything that could not be resolved.
    pub(crate) fn take_unresolved(&mut self) -> HashSet<Node> {
        std::mem::take(&mut self.unresolved)
    }
}

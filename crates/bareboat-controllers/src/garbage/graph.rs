//! The references from objects to their owners.
//!
//! A reference takes about sixty bytes. Objects without references to or from them take nothing.

// The content of a resource changes, but hash and equality of a node depend only on which resource it is.
#![allow(clippy::mutable_key_type)]

use super::remote::Names;
use bareboat_storage::{Entry, Owner, Resource};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher as _, Hash, Hasher, RandomState};
use std::sync::Arc;

/// The resource and key of an object.
#[derive(Clone)]
pub(crate) struct Node {
    resource: Arc<Resource>,
    key: Arc<str>,
}

impl Node {
    pub(crate) fn new(resource: &Arc<Resource>, entry: &Entry) -> Node {
        Node {
            resource: resource.clone(),
            key: entry.shared_key().clone(),
        }
    }

    /// The name of the stored resource.
    pub(crate) fn store(&self) -> &str {
        self.resource.name()
    }

    /// The object, if it exists.
    pub(crate) fn entry(&self) -> Option<Arc<Entry>> {
        self.resource.get(&self.key)
    }

    fn identity(&self) -> (*const Resource, &str) {
        (Arc::as_ptr(&self.resource), &self.key)
    }
}

impl PartialEq for Node {
    fn eq(&self, other: &Node) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Node {}

impl PartialOrd for Node {
    fn partial_cmp(&self, other: &Node) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Node {
    fn cmp(&self, other: &Node) -> std::cmp::Ordering {
        self.identity().cmp(&other.identity())
    }
}

impl Hash for Node {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.store(), self.key)
    }
}

/// A hash of a uid. It takes a third of the memory, and there is one for each reference.
pub(super) type Uid = u128;

/// References to owners, and what is known about these.
#[derive(Default)]
pub(crate) struct Graph {
    /// The uids of owners, which may not exist, and the objects that name them.
    references: BTreeSet<(Uid, Option<Node>)>,
    /// Owners that wait until their dependents are gone, by uid.
    waiting: HashMap<Uid, Node>,
    /// Objects that could not be checked because their kind or that of an owner is not served.
    unresolved: HashSet<Node>,
    /// Owners that were deleted while objects still name them, and whether they were in a namespace.
    deleted: HashMap<Uid, bool>,
    /// The owners that objects of other servers named when these were listed.
    pub(super) named_remotely: Names,
    /// Random hash functions, so that clients cannot choose two uids with the same hash.
    hashers: [RandomState; 2],
}

impl Graph {
    /// Forgets the objects of this server, which are read again. What other servers named stays: they may not answer.
    pub(crate) fn clear(&mut self) {
        let Graph {
            named_remotely,
            hashers,
            ..
        } = std::mem::take(self);
        self.named_remotely = named_remotely;
        self.hashers = hashers;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.references.is_empty() && self.waiting.is_empty() && self.unresolved.is_empty()
    }

    pub(super) fn hash(&self, uid: &str) -> Uid {
        let [high, low] = self.hashers.each_ref().map(|hasher| hasher.hash_one(uid));
        Uid::from(high) << 64 | Uid::from(low)
    }

    /// Adds the references of an object.
    pub(crate) fn link(&mut self, node: &Node, owners: &[Owner]) {
        for owner in owners {
            let uid = self.hash(&owner.uid);
            self.references.insert((uid, Some(node.clone())));
        }
    }

    /// Removes the references of an object.
    pub(crate) fn unlink(&mut self, node: &Node, owners: &[Owner]) {
        for owner in owners {
            let uid = self.hash(&owner.uid);
            self.references.remove(&(uid, Some(node.clone())));
            if self.naming(uid).next().is_none() {
                self.deleted.remove(&uid);
            }
        }
    }

    /// Removes an object that was deleted. References to it stay.
    pub(crate) fn gone(&mut self, entry: &Entry, node: &Node) {
        let uid = self.hash(&entry.facets().uid);
        self.waiting.remove(&uid);
        self.unresolved.remove(node);
        if self.naming(uid).next().is_some() {
            self.deleted.insert(uid, entry.namespace().is_some());
        }
    }

    /// Whether an owner with this uid was deleted. Uids are unique, so it stays absent even if its kind is not served.
    ///
    /// A cluster-scoped object cannot have an owner in a namespace, so for it this is false for such an owner.
    pub(crate) fn was_deleted(&self, uid: &str, namespace: Option<&str>) -> bool {
        let deleted = self.deleted.get(&self.hash(uid));
        deleted.is_some_and(|namespaced| !namespaced || namespace.is_some())
    }

    fn naming(&self, uid: Uid) -> impl Iterator<Item = &Node> {
        let from = self.references.range((uid, None)..);
        from.take_while(move |(named, _)| *named == uid)
            .filter_map(|(_, node)| node.as_ref())
    }

    /// The objects that name an owner.
    pub(crate) fn dependents(&self, uid: &str) -> Vec<Node> {
        self.naming(self.hash(uid)).cloned().collect()
    }

    /// Whether a dependent blocks the deletion of an owner.
    ///
    /// An object in another namespace than the owner cannot be owned by it, so it does not block: it may stay for ever.
    pub(crate) fn is_blocked(&self, owner: &Entry) -> bool {
        let uid = &owner.facets().uid;
        let blocks = |entry: &Entry| {
            let mut owners = entry.facets().owners.iter();
            owners.any(|reference| reference.uid == *uid && reference.block_owner_deletion)
                && owner
                    .namespace()
                    .is_none_or(|own| entry.namespace() == Some(own))
        };
        self.naming(self.hash(uid))
            .any(|node| node.entry().is_some_and(|entry| blocks(&entry)))
    }

    /// Remembers that an owner waits for its dependents.
    pub(crate) fn wait(&mut self, uid: &str, node: Node) {
        self.waiting.insert(self.hash(uid), node);
    }

    /// The owner with this uid, if it waits for its dependents.
    pub(crate) fn waiting(&self, uid: &str) -> Option<&Node> {
        self.waiting.get(&self.hash(uid))
    }

    /// Remembers an object that cannot be checked.
    pub(crate) fn unresolved(&mut self, node: Node) {
        self.unresolved.insert(node);
    }

    /// Removes and returns all objects that could not be checked.
    pub(crate) fn take_unresolved(&mut self) -> HashSet<Node> {
        std::mem::take(&mut self.unresolved)
    }
}

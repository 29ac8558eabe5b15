//! Who depends on whom.
//!
//! Only references are kept, in some sixty bytes each: an object that has no owners and is nobody's owner costs nothing
//! here.

// What a resource holds changes, but the hash and equality of a node look only at which resource it is.
#![allow(clippy::mutable_key_type)]

use bareboat_storage::{Entry, Owner, Resource};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher as _, Hash, Hasher, RandomState};
use std::sync::Arc;

/// The place of an object.
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

    /// Where it is stored.
    pub(crate) fn store(&self) -> &str {
        self.resource.name()
    }

    /// What is there now.
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

/// A uid as a number: texts are three times as large, and there are as many as there are references.
type Uid = u128;

/// Who depends on whom.
#[derive(Default)]
pub(crate) struct Graph {
    /// The uids of owners, whether those exist or not, each with the objects that name it.
    references: BTreeSet<(Uid, Option<Node>)>,
    /// Owners that wait until their dependents are gone, by uid.
    waiting: HashMap<Uid, Node>,
    /// Objects with owners of kinds nobody knows, or of such a kind themselves.
    unresolved: HashSet<Node>,
    /// Owners that were seen to go while others still name them, and whether they were in a namespace.
    departed: HashMap<Uid, bool>,
    /// What makes numbers of uids: chosen by chance, so that nobody can choose two uids of the same number.
    chance: [RandomState; 2],
}

impl Graph {
    pub(crate) fn is_empty(&self) -> bool {
        self.references.is_empty() && self.waiting.is_empty() && self.unresolved.is_empty()
    }

    fn number(&self, uid: &str) -> Uid {
        let [high, low] = self.chance.each_ref().map(|chance| chance.hash_one(uid));
        Uid::from(high) << 64 | Uid::from(low)
    }

    /// Adds the references of an object.
    pub(crate) fn link(&mut self, node: &Node, owners: &[Owner]) {
        for owner in owners {
            let uid = self.number(&owner.uid);
            self.references.insert((uid, Some(node.clone())));
        }
    }

    /// Removes the references of an object.
    pub(crate) fn unlink(&mut self, node: &Node, owners: &[Owner]) {
        for owner in owners {
            let uid = self.number(&owner.uid);
            self.references.remove(&(uid, Some(node.clone())));
            if self.naming(uid).next().is_none() {
                self.departed.remove(&uid);
            }
        }
    }

    /// Forgets an object that is gone; references to it stay.
    pub(crate) fn gone(&mut self, entry: &Entry, node: &Node) {
        let uid = self.number(&entry.facets().uid);
        self.waiting.remove(&uid);
        self.unresolved.remove(node);
        if self.naming(uid).next().is_some() {
            self.departed.insert(uid, entry.namespace().is_some());
        }
    }

    /// Whether an owner of that uid was seen to go. Nobody else gets its uid: it is absent even if its kind went, too.
    ///
    /// An object outside of namespaces has no owner in one, present or not.
    pub(crate) fn has_departed(&self, uid: &str, namespace: Option<&str>) -> bool {
        let departed = self.departed.get(&self.number(uid));
        departed.is_some_and(|namespaced| !namespaced || namespace.is_some())
    }

    fn naming(&self, uid: Uid) -> impl Iterator<Item = &Node> {
        let from = self.references.range((uid, None)..);
        from.take_while(move |(named, _)| *named == uid)
            .filter_map(|(_, node)| node.as_ref())
    }

    /// The objects that name an owner.
    pub(crate) fn dependents(&self, uid: &str) -> Vec<Node> {
        self.naming(self.number(uid)).cloned().collect()
    }

    /// Whether an owner that is to go after its dependents has to wait for one.
    ///
    /// An object that cannot be owned, since it is not in the namespace of the owner, is not waited for: it may never go.
    pub(crate) fn is_blocked(&self, owner: &Entry) -> bool {
        let uid = &owner.facets().uid;
        let blocks = |entry: &Entry| {
            let mut owners = entry.facets().owners.iter();
            owners.any(|reference| reference.uid == *uid && reference.block_owner_deletion)
                && owner
                    .namespace()
                    .is_none_or(|own| entry.namespace() == Some(own))
        };
        self.naming(self.number(uid))
            .any(|node| node.entry().is_some_and(|entry| blocks(&entry)))
    }

    /// An owner begins to wait for its dependents.
    pub(crate) fn wait(&mut self, uid: &str, node: Node) {
        self.waiting.insert(self.number(uid), node);
    }

    /// The owner of that uid, if it waits.
    pub(crate) fn waiting(&self, uid: &str) -> Option<&Node> {
        self.waiting.get(&self.number(uid))
    }

    /// An owner of this object is of a kind nobody knows, or the object itself is.
    pub(crate) fn unresolved(&mut self, node: Node) {
        self.unresolved.insert(node);
    }

    /// Everything that could not be resolved.
    pub(crate) fn take_unresolved(&mut self) -> HashSet<Node> {
        std::mem::take(&mut self.unresolved)
    }
}

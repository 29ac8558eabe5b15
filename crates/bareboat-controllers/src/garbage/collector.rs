//! Deletes objects and changes their metadata, each only if the object has not changed since it was checked.

use super::decide::{Decision, OwnerState, decide, is_foreground_deleting, owner_state};
use super::remote::remote_owners;
use super::report::{is_in_other_namespace, report};
use super::{FOREGROUND, GarbageListener, Job, Node, ORPHAN, Shared};
use crate::Client;
use crate::controller::Controller;
use crate::identity::Identity;
use crate::kinds::{entry_path, of_store, read};
use crate::queue::{Queue, Verdict};
use crate::startup::Context;
use bareboat_api::kind::Kind;
use bareboat_api::{Status, Value, value};
use bareboat_server::kinds::catalog::Table;
use bareboat_storage::{Entry, Owner};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// How many missing owners of one object are searched for in other namespaces. A search reads every namespace, and every
/// owner that it finds is reported in an event.
const MAX_SEARCHES: usize = 16;

/// How long to wait until a shared store is up to date.
const FRESH: Duration = Duration::from_secs(30);
/// How often an object is checked whose owner another server has.
const REMOTE_INTERVAL: Duration = Duration::from_secs(60);
/// How many dependents of one owner are changed at the same time.
const PARALLEL_CHANGES: usize = 16;

/// Deletes objects whose owners are gone, and finishes deletions that wait for dependents.
#[derive(Clone)]
pub(crate) struct GarbageCollector {
    pub(super) client: Client,
    pub(super) shared: Arc<Shared>,
}

/// An object, its kind and its URL.
struct Found {
    entry: Arc<Entry>,
    kind: Arc<Kind>,
    path: String,
}

impl Controller for GarbageCollector {
    const NAME: &'static str = "garbage";
    const MANAGER: &'static str = "garbage-collector";
    const PARALLEL: usize = 64;
    type Key = Job;
    type Listener = GarbageListener;

    fn identity(_: &Table) -> Identity {
        Identity::kubernetes("generic-garbage-collector")
    }

    fn new(
        context: &mut Context<'_>,
        queue: Arc<Queue<Job>>,
    ) -> (GarbageCollector, GarbageListener) {
        let shared = Arc::new(Shared {
            graph: Mutex::default(),
            queue,
            searches: Arc::default(),
        });
        let collector = GarbageCollector {
            client: context.client.clone(),
            shared: shared.clone(),
        };
        let listener = GarbageListener {
            shared,
            server: context.server.clone(),
        };
        (collector, listener)
    }

    async fn reconcile(&self, job: Job) -> Verdict {
        let store = self.client.server().store();
        if !matches!(store.freshen(FRESH).await, Ok(true)) {
            return Verdict::Retry;
        }
        let result = match &job {
            Job::Check(node) => self.check(node).await,
            Job::Orphan(node) => self.orphan(node).await.map(|()| Verdict::Done),
            Job::Foreground(node) => self.foreground(node).await,
            Job::Remote => Ok(self.check_remote().await),
        };
        match result {
            Ok(verdict) => verdict,
            // It was deleted or changed since it was checked.
            Err(status) if matches!(status.code, 404 | 409) => Verdict::Retry,
            Err(status) => {
                if let Job::Check(node) | Job::Orphan(node) | Job::Foreground(node) = &job {
                    tracing::warn!(?node, %status, "cannot collect an object");
                }
                Verdict::Retry
            }
        }
    }
}

impl GarbageCollector {
    /// The object of a node, if it exists and its kind is served.
    fn find(&self, node: &Node) -> Option<Found> {
        let entry = node.entry()?;
        let table = self.client.server().catalog().table();
        let found = of_store(&table, node.store())
            .and_then(|kind| Some((kind.clone(), entry_path(kind, &entry)?)));
        drop(table);
        let Some((kind, path)) = found else {
            self.shared.graph.lock().unresolved(node.clone());
            return None;
        };
        Some(Found { entry, kind, path })
    }

    /// Checks whether the owners of an object exist. It is checked again later if one of them is an object of another
    /// server, which reports no events.
    async fn check(&self, node: &Node) -> Result<Verdict, Status> {
        let Some(found) = self.find(node) else {
            return Ok(Verdict::Done);
        };
        // Most objects that are checked stay, so their metadata is not kept in memory.
        let facets = found.entry.glance();
        // Nothing is to be done about an object under deletion. If it waits for its dependents, it has another job.
        if facets.deletion_timestamp.is_some() || found.kind.policy.ttl_seconds.is_some() {
            return Ok(Verdict::Done);
        }
        let dependents = self.shared.graph.lock().dependents(&facets.uid);
        let remote = remote_owners(&self.client, found.entry.namespace(), &facets.owners).await;
        let (states, misplaced) = self.owners_of(&found.entry, &facets.owners, &remote);
        for owner in misplaced {
            report(&self.client, &found.kind, &found.entry, owner).await;
        }
        let verdict = match remote.is_empty() {
            true => Verdict::Done,
            false => Verdict::After(REMOTE_INTERVAL),
        };
        let done: Result<(), Status> = match decide(&states, !dependents.is_empty()) {
            Decision::Keep => return Ok(verdict),
            Decision::Undecided => {
                self.shared.graph.lock().unresolved(node.clone());
                return Ok(verdict);
            }
            Decision::RemoveOwners(indices) => {
                // The indices are sorted.
                let dead = |index: usize, _: &Value| indices.binary_search(&index).is_ok();
                self.change_owners(&found, |owners| remove(owners, dead))
                    .await
            }
            Decision::DeleteForeground => self.delete_foreground(node, found, &dependents).await,
            Decision::Delete => {
                let policy = match () {
                    () if facets.has_finalizer(ORPHAN) => "Orphan",
                    () if facets.has_finalizer(FOREGROUND) => "Foreground",
                    () => "Background",
                };
                self.delete(&found, policy).await
            }
        };
        done.map(|()| verdict)
    }

    /// The states of the owners of an object, and those owners that are in another namespace.
    fn owners_of<'o>(
        &self,
        entry: &Entry,
        owners: &'o [Owner],
        remote: &HashMap<usize, OwnerState>,
    ) -> (Vec<OwnerState>, Vec<&'o Owner>) {
        let namespace = entry.namespace();
        let deleted: Vec<bool> = {
            let graph = self.shared.graph.lock();
            let deleted = |owner: &Owner| graph.was_deleted(&owner.uid, namespace);
            owners.iter().map(deleted).collect()
        };
        let store = self.client.server().store();
        let table = self.client.server().catalog().table();
        let (mut states, mut misplaced) = (Vec::new(), Vec::new());
        let mut searches = 0;
        for (index, (owner, deleted)) in owners.iter().zip(deleted).enumerate() {
            if let Some(state) = remote.get(&index) {
                states.push(*state);
                continue;
            }
            if deleted {
                states.push(OwnerState::Absent);
                continue;
            }
            let state = owner_state(&table, namespace, owner);
            let missing = matches!(state, OwnerState::Absent | OwnerState::Invalid);
            if missing && searches < MAX_SEARCHES {
                searches += 1;
                if is_in_other_namespace(&table, store, entry, owner, state) {
                    misplaced.push(owner);
                }
            }
            states.push(state);
        }
        (states, misplaced)
    }

    /// The states of the owners of an object of another server.
    pub(super) fn states(
        &self,
        namespace: Option<&str>,
        owners: &[Owner],
        remote: &HashMap<usize, OwnerState>,
    ) -> Vec<OwnerState> {
        let table = self.client.server().catalog().table();
        let owners = owners.iter().enumerate();
        let state = |(index, owner)| match remote.get(&index) {
            Some(state) => *state,
            None => owner_state(&table, namespace, owner),
        };
        owners.map(state).collect()
    }

    /// Deletes an object after its dependents.
    async fn delete_foreground(
        &self,
        node: &Node,
        mut found: Found,
        dependents: &[Node],
    ) -> Result<(), Status> {
        let waits = |node: &Node| {
            node.entry()
                .is_some_and(|entry| is_foreground_deleting(&entry))
        };
        if dependents.iter().any(waits) {
            // A cycle: a dependent of this object waits for this object.
            self.change_owners(&found, |owners| {
                for owner in owners.iter_mut() {
                    let owner = owner.make_object();
                    if owner.get("blockOwnerDeletion") == Some(&Value::Bool(true)) {
                        owner.insert("blockOwnerDeletion", Value::Bool(false));
                    }
                }
            })
            .await?;
            match self.find(node) {
                Some(changed) if changed.entry.facets().uid == found.entry.facets().uid => {
                    found = changed;
                }
                _ => return Ok(()),
            }
        }
        self.delete(&found, "Foreground").await
    }

    async fn delete(&self, found: &Found, policy: &str) -> Result<(), Status> {
        let options = value!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": policy,
            "preconditions": {
                "uid": (&*found.entry.facets().uid),
                "resourceVersion": (found.entry.revision().to_string()),
            },
        });
        let client = self.client.keeping(&found.kind);
        client.remove(&found.path, &options).await
    }

    /// Removes the finalizer of an owner whose dependents are gone.
    async fn foreground(&self, node: &Node) -> Result<Verdict, Status> {
        let Some(found) = self
            .find(node)
            .filter(|found| is_foreground_deleting(&found.entry))
        else {
            return Ok(Verdict::Done);
        };
        if self.shared.graph.lock().is_blocked(&found.entry) {
            return Ok(Verdict::Done);
        }
        if let Some(wait) = self.is_blocked_remotely(node, &found.entry).await? {
            return Ok(Verdict::After(wait));
        }
        let dropped = self.drop_finalizer(&found, FOREGROUND).await;
        dropped.map(|()| Verdict::Done)
    }

    /// Removes an owner from its dependents, then removes its finalizer.
    async fn orphan(&self, node: &Node) -> Result<(), Status> {
        let Some(found) = self.find(node) else {
            return Ok(());
        };
        let facets = found.entry.facets();
        if facets.deletion_timestamp.is_none() || !facets.has_finalizer(ORPHAN) {
            return Ok(());
        }
        let dependents = self.shared.graph.lock().dependents(&facets.uid);
        let mut running: JoinSet<Result<(), Status>> = JoinSet::new();
        let mut outcome = Ok(());
        for dependent in dependents {
            if running.len() >= PARALLEL_CHANGES
                && let Some(ended) = running.join_next().await
            {
                outcome = outcome.and(ended.unwrap_or_else(|error| Err(Status::internal(error))));
            }
            let (collector, uid) = (self.clone(), facets.uid.clone());
            running.spawn(async move { collector.remove_owner(&dependent, &uid).await });
        }
        while let Some(ended) = running.join_next().await {
            outcome = outcome.and(ended.unwrap_or_else(|error| Err(Status::internal(error))));
        }
        outcome?;
        self.orphan_remotely(node, &found.entry).await?;
        self.drop_finalizer(&found, ORPHAN).await
    }

    async fn remove_owner(&self, node: &Node, uid: &str) -> Result<(), Status> {
        if node.entry().is_none() {
            return Ok(());
        }
        let Some(found) = self.find(node) else {
            let why = format!("{} is not served at present", node.store());
            return Err(Status::unavailable(why));
        };
        if !found
            .entry
            .facets()
            .owners
            .iter()
            .any(|owner| *owner.uid == *uid)
        {
            return Ok(());
        }
        let same = |_: usize, owner: &Value| owner.get("uid").and_then(Value::as_str) == Some(uid);
        match self
            .change_owners(&found, |owners| remove(owners, same))
            .await
        {
            Err(status) if status.code == 404 => Ok(()),
            other => other,
        }
    }

    async fn drop_finalizer(&self, found: &Found, finalizer: &str) -> Result<(), Status> {
        let kept = found.entry.facets().finalizers.iter();
        let kept: Vec<Value> = kept
            .filter(|held| ***held != *finalizer)
            .map(Value::string)
            .collect();
        self.change(found, "finalizers", kept).await
    }

    async fn change_owners(
        &self,
        found: &Found,
        change: impl FnOnce(&mut Vec<Value>),
    ) -> Result<(), Status> {
        let mut object = read(&found.entry)?;
        let Some(Value::Array(mut owners)) = object.remove_meta("ownerReferences") else {
            return Ok(());
        };
        change(&mut owners);
        self.change(found, "ownerReferences", owners).await
    }

    /// Replaces a list in the metadata of an object, unless the object has changed.
    async fn change(&self, found: &Found, member: &str, list: Vec<Value>) -> Result<(), Status> {
        let list = if list.is_empty() {
            Value::Null
        } else {
            Value::Array(list)
        };
        let mut metadata = value!({
            "uid": (&*found.entry.facets().uid),
            "resourceVersion": (found.entry.revision().to_string()),
        });
        metadata.make_object().insert(member, list);
        let mut patch = Value::object();
        patch.make_object().insert("metadata", metadata);
        let client = self.client.keeping(&found.kind);
        match client.merge(&found.path, &patch).await {
            Err(status) if status.code != 404 => Err(status),
            _ => Ok(()),
        }
    }
}

/// Removes references that meet a condition.
fn remove(owners: &mut Vec<Value>, unwanted: impl Fn(usize, &Value) -> bool) {
    let mut index = 0;
    owners.retain(|owner| {
        index += 1;
        !unwanted(index - 1, owner)
    });
}

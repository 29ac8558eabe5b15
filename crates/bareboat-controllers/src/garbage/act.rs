//! Doing what was decided: deletions and changes of metadata, each only if the object is still as it was judged.

use super::judge::{Decision, Standing, decide, is_leaving, standing};
use super::report::{is_elsewhere, report};
use super::{FOREGROUND, Job, Node, ORPHAN, Shared};
use crate::Client;
use crate::kinds::{entry_path, of_store, read};
use crate::queue::Verdict;
use bareboat_api::kind::Kind;
use bareboat_api::{Status, Value, value};
use bareboat_storage::{Entry, Owner};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// How many missing owners of one object are searched for in other namespaces. A search looks at each namespace, and
/// each owner it finds is reported in an event.
const LOOKED_FOR: usize = 16;

/// How long a shared store may take to prove that it is up to date.
const FRESH: Duration = Duration::from_secs(30);
/// How many dependents of one owner are changed at once.
const AT_ONCE: usize = 16;

/// Collects garbage.
#[derive(Clone)]
pub(crate) struct Worker {
    client: Client,
    shared: Arc<Shared>,
}

/// An object as it was found.
struct Found {
    entry: Arc<Entry>,
    kind: Arc<Kind>,
    path: String,
}

impl Worker {
    pub(crate) fn new(client: &Client, shared: Arc<Shared>) -> Worker {
        Worker {
            client: client.named("garbage-collector"),
            shared,
        }
    }

    pub(crate) async fn look(&self, job: Job) -> Verdict {
        let store = self.client.server().store();
        if !matches!(store.freshen(FRESH).await, Ok(true)) {
            return Verdict::Retry;
        }
        let result = match &job {
            Job::Judge(node) => self.judge(node).await,
            Job::Orphan(node) => self.orphan(node).await,
            Job::Foreground(node) => self.foreground(node).await,
        };
        match result {
            Ok(()) => Verdict::Done,
            // Gone, or no longer what it was when it was judged.
            Err(status) if matches!(status.code, 404 | 409) => Verdict::Retry,
            Err(status) => {
                let (Job::Judge(node) | Job::Orphan(node) | Job::Foreground(node)) = &job;
                tracing::warn!(?node, %status, "garbage could not be collected");
                Verdict::Retry
            }
        }
    }

    /// What is at a node now, if it can be reached.
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

    /// Looks whether the owners of an object are still there.
    async fn judge(&self, node: &Node) -> Result<(), Status> {
        let Some(found) = self.find(node) else {
            return Ok(());
        };
        // Most that are judged stay, and are not looked at again.
        let facets = found.entry.glance();
        // Whoever is going is left alone, be it that it waits for its own dependents: another job looks after that.
        if facets.deletion_timestamp.is_some() || found.kind.policy.ttl_seconds.is_some() {
            return Ok(());
        }
        let dependents = self.shared.graph.lock().dependents(&facets.uid);
        let (standings, strays) = self.owners_of(&found.entry, &facets.owners);
        for owner in strays {
            report(&self.client, &found.kind, &found.entry, owner).await;
        }
        match decide(&standings, !dependents.is_empty()) {
            Decision::Keep => Ok(()),
            Decision::Undecided => {
                self.shared.graph.lock().unresolved(node.clone());
                Ok(())
            }
            Decision::Strip(places) => {
                // They are in order.
                let dead = |index: usize, _: &Value| places.binary_search(&index).is_ok();
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
        }
    }

    /// How the owners of an object stand, and which of them are in another namespace.
    fn owners_of<'o>(&self, entry: &Entry, owners: &'o [Owner]) -> (Vec<Standing>, Vec<&'o Owner>) {
        let namespace = entry.namespace();
        let departed: Vec<bool> = {
            let graph = self.shared.graph.lock();
            let departed = |owner: &Owner| graph.has_departed(&owner.uid, namespace);
            owners.iter().map(departed).collect()
        };
        let store = self.client.server().store();
        let table = self.client.server().catalog().table();
        let (mut standings, mut strays) = (Vec::new(), Vec::new());
        let mut looked = 0;
        for (owner, departed) in owners.iter().zip(departed) {
            if departed {
                standings.push(Standing::Absent);
                continue;
            }
            let standing = standing(&table, namespace, owner);
            let odd = matches!(standing, Standing::Absent | Standing::Invalid);
            if odd && looked < LOOKED_FOR {
                looked += 1;
                if is_elsewhere(&table, store, entry, owner, standing) {
                    strays.push(owner);
                }
            }
            standings.push(standing);
        }
        (standings, strays)
    }

    /// Deletes an object after its dependents.
    async fn delete_foreground(
        &self,
        node: &Node,
        mut found: Found,
        dependents: &[Node],
    ) -> Result<(), Status> {
        let waits = |node: &Node| node.entry().is_some_and(|entry| is_leaving(&entry));
        if dependents.iter().any(waits) {
            // A circle: whoever waits for this one is one of those it would wait for.
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

    /// Lets an owner go whose dependents are gone.
    async fn foreground(&self, node: &Node) -> Result<(), Status> {
        let Some(found) = self.find(node).filter(|found| is_leaving(&found.entry)) else {
            return Ok(());
        };
        if self.shared.graph.lock().is_blocked(&found.entry) {
            return Ok(());
        }
        self.drop_finalizer(&found, FOREGROUND).await
    }

    /// Makes dependents forget an owner that asks for it, and lets it go.
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
            if running.len() >= AT_ONCE
                && let Some(ended) = running.join_next().await
            {
                outcome = outcome.and(ended.unwrap_or_else(|error| Err(Status::internal(error))));
            }
            let (worker, uid) = (self.clone(), facets.uid.clone());
            running.spawn(async move { worker.forget_owner(&dependent, &uid).await });
        }
        while let Some(ended) = running.join_next().await {
            outcome = outcome.and(ended.unwrap_or_else(|error| Err(Status::internal(error))));
        }
        outcome?;
        self.drop_finalizer(&found, ORPHAN).await
    }

    async fn forget_owner(&self, node: &Node, uid: &str) -> Result<(), Status> {
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

    /// Replaces a list in the metadata of an object, if it is still the same object in the same state.
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

/// Takes the references out that are not wanted.
fn remove(owners: &mut Vec<Value>, unwanted: impl Fn(usize, &Value) -> bool) {
    let mut index = 0;
    owners.retain(|owner| {
        index += 1;
        !unwanted(index - 1, owner)
    });
}

//! Garbage collection across API servers. Other servers send no events, so their objects are listed: now and then, and
//! when an owner is deleted in the foreground or with orphans.
//!
//! A server that does not answer delays only the deletion of owners that its objects named before.

mod dependent;
mod gather;
mod names;
mod owners;
mod search;

pub(super) use names::Names;
pub(super) use owners::remote_owners;
pub(super) use search::Searches;

use super::decide::{Decision, decide};
use super::{FOREGROUND, GarbageCollector, Node, ORPHAN};
use crate::queue::Verdict;
use crate::remote::{self, AT_ONCE, GroupResource, RemoteResource};
use bareboat_api::Status;
use bareboat_storage::{Entry, Owner};
use dependent::RemoteDependent;
use futures_util::stream::{self, StreamExt as _};
use search::{Found, Gaps};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// How often the objects of other servers are listed.
const INTERVAL: Duration = Duration::from_secs(60);
/// How often an owner is looked at that waits for objects of other servers.
const WAIT: Duration = Duration::from_secs(1);
/// How many resources are listed in these times. With more of them, each is listed less often.
const RESOURCES: u32 = 32;

/// Returns after how long a number of resources is listed again.
fn stretched(time: Duration, resources: usize) -> Duration {
    let resources = u32::try_from(resources).unwrap_or(u32::MAX);
    time.saturating_mul(resources.div_ceil(RESOURCES).max(1))
}

impl GarbageCollector {
    /// Checks all objects of other servers that name owners.
    pub(super) async fn check_remote(&self) -> Verdict {
        let server = self.client.server();
        let (resources, unavailable) = remote::collectable(server);
        let known: HashSet<GroupResource> = resources
            .iter()
            .map(RemoteResource::group_resource)
            .collect();
        let still_exists = |resource: &GroupResource| {
            known.contains(resource) || unavailable.contains(&resource.0)
        };
        (self.shared.graph.lock()).keep_names(still_exists);
        if !server.has_remote_versions() {
            return Verdict::Done;
        }
        let next = stretched(INTERVAL, resources.len());
        let checks = resources
            .into_iter()
            .map(|resource| self.check_resource(resource));
        let checks = stream::iter(checks).buffer_unordered(AT_ONCE);
        checks.collect::<()>().await;
        Verdict::After(next)
    }

    /// Checks the objects of one resource, unless it cannot be listed.
    async fn check_resource(&self, resource: RemoteResource) {
        let name = resource.group_resource();
        self.shared.graph.lock().begin_names(&name);
        let listed = self
            .shared
            .searches
            .list(&self.client, &resource, None, |_| true);
        let dependents = match listed.await {
            Ok(dependents) => dependents,
            Err(status) => {
                tracing::debug!(resource = resource.name(), %status, "cannot list objects of another server");
                return;
            }
        };
        let owners = dependents.iter().flat_map(|dependent| &dependent.owners);
        let uids: Vec<&str> = owners.map(|owner| &*owner.uid).collect();
        self.shared.graph.lock().end_names(&name, &uids);
        for dependent in &dependents {
            self.collect(dependent).await;
        }
    }

    /// Checks whether the owners of an object of another server exist.
    async fn collect(&self, dependent: &RemoteDependent) {
        if dependent.is_deleting {
            return;
        }
        match self.try_collect(dependent).await {
            // It was deleted or changed since it was listed.
            Err(status) if matches!(status.code, 404 | 409) => {}
            Err(status) => {
                let path = &dependent.path;
                tracing::warn!(path, %status, "cannot collect an object of another server");
            }
            Ok(()) => {}
        }
    }

    async fn try_collect(&self, dependent: &RemoteDependent) -> Result<(), Status> {
        let namespace = dependent.namespace.as_deref();
        let remote = remote_owners(&self.client, namespace, &dependent.owners).await;
        let states = self.states(namespace, &dependent.owners, &remote);
        let own = self.shared.graph.lock().dependents(&dependent.uid);
        match decide(&states, !own.is_empty()) {
            Decision::Keep | Decision::Undecided => Ok(()),
            Decision::RemoveOwners(dead) => {
                let is_dead = |index: usize, _: &Owner| dead.binary_search(&index).is_ok();
                dependent.remove_owners(&self.client, is_dead).await
            }
            Decision::DeleteForeground => dependent.delete(&self.client, "Foreground").await,
            Decision::Delete => {
                let policy = match () {
                    () if dependent.has_finalizer(ORPHAN) => "Orphan",
                    () if dependent.has_finalizer(FOREGROUND) => "Foreground",
                    () => "Background",
                };
                dependent.delete(&self.client, policy).await
            }
        }
    }

    /// Deletes the dependents that other servers have of an owner under foreground deletion. Returns how long to wait if
    /// some of them block the deletion.
    pub(super) async fn is_blocked_remotely(
        &self,
        node: &Node,
        owner: &Entry,
    ) -> Result<Option<Duration>, Status> {
        let uid = &owner.facets().uid;
        let found = self.search(owner).await;
        for dependent in found.naming(uid) {
            self.collect(dependent).await;
        }
        self.ensure_complete(node, uid, &found.gaps)?;
        let blocked = found.naming(uid).any(|dependent| dependent.blocks(uid));
        Ok(blocked.then(|| stretched(WAIT, found.resources)))
    }

    /// Removes an owner from the objects of other servers that name it.
    pub(super) async fn orphan_remotely(&self, node: &Node, owner: &Entry) -> Result<(), Status> {
        let uid = &owner.facets().uid;
        let found = self.search(owner).await;
        for dependent in found.naming(uid) {
            let is_owner = |_: usize, known: &Owner| *known.uid == **uid;
            match dependent.remove_owners(&self.client, is_owner).await {
                Err(status) if status.code != 404 => return Err(status),
                _ => {}
            }
        }
        self.ensure_complete(node, uid, &found.gaps)
    }

    /// Searches other servers for the dependents of an owner, and remembers that they name it.
    async fn search(&self, owner: &Entry) -> Arc<Found> {
        let uid = &owner.facets().uid;
        let namespace = owner.namespace();
        let searches = &self.shared.searches;
        let found = searches.find(&self.client, namespace, uid).await;
        let mut graph = self.shared.graph.lock();
        for dependent in found.naming(uid) {
            graph.add_name(&dependent.resource, uid);
        }
        drop(graph);
        found
    }

    /// Fails if objects named an owner that cannot be listed now. The owner is looked at again when an APIService changes.
    fn ensure_complete(&self, node: &Node, uid: &str, gaps: &Gaps) -> Result<(), Status> {
        let mut graph = self.shared.graph.lock();
        let Some((group, plural)) = graph.named_in(uid, |resource| gaps.has(resource)) else {
            return Ok(());
        };
        graph.unresolved(node.clone());
        Err(Status::unavailable(format!(
            "{plural}.{group} named this owner and cannot be listed"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_resources_are_listed_less_often() {
        for (resources, seconds) in [(0, 60), (1, 60), (32, 60), (33, 120), (500, 960)] {
            assert_eq!(stretched(INTERVAL, resources), Duration::from_secs(seconds));
        }
    }
}

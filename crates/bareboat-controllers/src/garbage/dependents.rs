//! Dependents that other API servers have. They send no events here, so they are listed: now and then, and when an owner
//! that they name is deleted. A group that does not answer is left out; it is listed again later.

use super::decide::{Decision, decide};
use super::graph::Graph;
use super::remote::remote_owners;
use super::{FOREGROUND, GarbageCollector, ORPHAN};
use crate::Client;
use crate::kinds::join;
use crate::queue::Verdict;
use crate::remote::{self, RemoteResource};
use bareboat_api::{Status, Str, Value, value};
use bareboat_storage::{Entry, Owner};
use futures_util::future::join_all;
use http::Method;
use std::time::Duration;

/// How often the objects of other servers are listed.
const INTERVAL: Duration = Duration::from_secs(60);
/// How many resources are listed in that time. With more of them, each is listed less often.
const RESOURCES: u32 = 32;

/// An object of another server that names owners.
pub(super) struct RemoteDependent {
    path: String,
    namespace: Option<Str>,
    uid: Str,
    resource_version: Str,
    is_deleting: bool,
    finalizers: Vec<Str>,
    owners: Vec<Owner>,
    /// The references as they are sent.
    references: Vec<Value>,
}

impl RemoteDependent {
    /// Reads the metadata of an object. Objects without owners, and those that cannot be addressed, are left out.
    fn read(resource: &RemoteResource, object: &Value) -> Option<RemoteDependent> {
        let metadata = object.get("metadata")?;
        let text = |value: &Value, key: &str| -> Option<Str> {
            let text = value.get(key).and_then(Value::as_str)?;
            (!text.is_empty()).then(|| Str::new(text))
        };
        let list = |key: &str| metadata.get(key).and_then(Value::as_array).unwrap_or(&[]);
        let namespace = match resource.namespaced {
            true => Some(text(metadata, "namespace").filter(|name| is_plain(name))?),
            false => None,
        };
        let references = list("ownerReferences").to_vec();
        let owner = |reference: &Value| {
            Some(Owner {
                api_version: text(reference, "apiVersion")?.as_str().into(),
                kind: text(reference, "kind")?.as_str().into(),
                name: text(reference, "name")?.as_str().into(),
                uid: text(reference, "uid")?.as_str().into(),
                controller: reference.get("controller") == Some(&Value::Bool(true)),
                block_owner_deletion: reference.get("blockOwnerDeletion")
                    == Some(&Value::Bool(true)),
            })
        };
        let owners: Vec<Owner> = references.iter().map(owner).collect::<Option<_>>()?;
        if owners.is_empty() {
            return None;
        }
        let name = text(metadata, "name")?;
        Some(RemoteDependent {
            path: join(&resource.collection(namespace.as_deref()), &name),
            uid: text(metadata, "uid")?,
            resource_version: text(metadata, "resourceVersion")?,
            is_deleting: text(metadata, "deletionTimestamp").is_some(),
            finalizers: list("finalizers")
                .iter()
                .filter_map(|held| held.as_str().map(Str::new))
                .collect(),
            namespace,
            owners,
            references,
        })
    }

    fn names(&self, uid: &str) -> bool {
        self.owners.iter().any(|owner| *owner.uid == *uid)
    }

    fn blocks(&self, uid: &str) -> bool {
        let mut owners = self.owners.iter();
        owners.any(|owner| *owner.uid == *uid && owner.block_owner_deletion)
    }

    async fn delete(&self, client: &Client, policy: &str) -> Result<(), Status> {
        let options = value!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": policy,
            "preconditions": {
                "uid": (self.uid.as_str()),
                "resourceVersion": (self.resource_version.as_str()),
            },
        });
        let deleted = client.remote(Method::DELETE, &self.path, Some(&options));
        deleted.await.map(|_| ())
    }

    /// Removes references that meet a condition, unless the object has changed.
    async fn remove_owners(
        &self,
        client: &Client,
        unwanted: impl Fn(usize, &Owner) -> bool,
    ) -> Result<(), Status> {
        let all = self.references.iter().zip(&self.owners).enumerate();
        let kept: Vec<Value> = all
            .filter(|(index, (_, owner))| !unwanted(*index, owner))
            .map(|(_, (reference, _))| reference.clone())
            .collect();
        let kept = match kept.is_empty() {
            true => Value::Null,
            false => Value::Array(kept),
        };
        let patch = value!({"metadata": {
            "uid": (self.uid.as_str()),
            "resourceVersion": (self.resource_version.as_str()),
            "ownerReferences": kept,
        }});
        client.remote_merge(&self.path, &patch).await
    }
}

/// Whether a name of another server can be a part of a URL.
fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.bytes().all(plain)
}

/// Lists the objects with owners that other servers have, in one namespace or in all of them.
async fn list(client: &Client, namespace: Option<&str>) -> Vec<RemoteDependent> {
    let resources = remote::collectable(client.server());
    let lists = resources.iter().map(|resource| async move {
        match remote::list(client, &resource.collection(namespace)).await {
            Ok(objects) => {
                let objects = objects.iter();
                let found = objects.filter_map(|object| RemoteDependent::read(resource, object));
                found.collect()
            }
            Err(status) => {
                tracing::debug!(resource = resource.name(), %status, "cannot list objects of another server");
                Vec::new()
            }
        }
    });
    join_all(lists).await.into_iter().flatten().collect()
}

/// Returns after how long a number of resources is listed again.
fn interval(resources: usize) -> Duration {
    let resources = u32::try_from(resources).unwrap_or(u32::MAX);
    INTERVAL.saturating_mul(resources.div_ceil(RESOURCES).max(1))
}

impl GarbageCollector {
    /// Checks all objects of other servers that name owners.
    pub(super) async fn check_remote(&self) -> Verdict {
        let resources = remote::collectable(self.client.server()).len();
        if resources == 0 {
            self.shared.graph.lock().name_remotely(&[]);
            return match self.client.server().remote_versions().is_empty() {
                true => Verdict::Done,
                false => Verdict::After(INTERVAL),
            };
        }
        let dependents = list(&self.client, None).await;
        let named = dependents.iter().flat_map(|dependent| &dependent.owners);
        let named: Vec<&str> = named.map(|owner| &*owner.uid).collect();
        self.shared.graph.lock().name_remotely(&named);
        for dependent in dependents.iter().filter(|found| !found.is_deleting) {
            match self.check_one(dependent).await {
                // It was deleted or changed since it was listed.
                Err(status) if matches!(status.code, 404 | 409) => {}
                Err(status) => {
                    let path = &dependent.path;
                    tracing::warn!(path, %status, "cannot collect an object of another server");
                }
                Ok(()) => {}
            }
        }
        Verdict::After(interval(resources))
    }

    async fn check_one(&self, dependent: &RemoteDependent) -> Result<(), Status> {
        let namespace = dependent.namespace.as_deref();
        let remote = remote_owners(&self.client, namespace, &dependent.owners).await;
        let states = self.states(namespace, &dependent.owners, &remote);
        let own = self.shared.graph.lock().dependents(&dependent.uid);
        let held = |finalizer: &str| dependent.finalizers.iter().any(|held| *held == finalizer);
        match decide(&states, !own.is_empty()) {
            Decision::Keep | Decision::Undecided => Ok(()),
            Decision::RemoveOwners(dead) => {
                let is_dead = |index: usize, _: &Owner| dead.binary_search(&index).is_ok();
                dependent.remove_owners(&self.client, is_dead).await
            }
            Decision::DeleteForeground => dependent.delete(&self.client, "Foreground").await,
            Decision::Delete => {
                let policy = match () {
                    () if held(ORPHAN) => "Orphan",
                    () if held(FOREGROUND) => "Foreground",
                    () => "Background",
                };
                dependent.delete(&self.client, policy).await
            }
        }
    }

    /// Whether objects of other servers block the deletion of an owner.
    pub(super) async fn is_blocked_remotely(&self, owner: &Entry) -> bool {
        let uid = &owner.facets().uid;
        let dependents = list(&self.client, owner.namespace()).await;
        let mut dependents = dependents.iter();
        dependents.any(|dependent| dependent.blocks(uid))
    }

    /// Removes an owner from objects of other servers.
    pub(super) async fn orphan_remotely(&self, owner: &Entry) -> Result<(), Status> {
        let uid = &owner.facets().uid;
        let dependents = list(&self.client, owner.namespace()).await;
        for dependent in dependents.iter().filter(|dependent| dependent.names(uid)) {
            let is_owner = |_: usize, known: &Owner| *known.uid == **uid;
            match dependent.remove_owners(&self.client, is_owner).await {
                Err(status) if status.code != 404 => return Err(status),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Graph {
    /// Remembers which owners objects of other servers name.
    fn name_remotely(&mut self, uids: &[&str]) {
        self.named_remotely = uids.iter().map(|uid| self.hash(uid)).collect();
    }

    /// Whether objects of other servers named this owner when they were listed.
    pub(super) fn is_named_remotely(&self, uid: &str) -> bool {
        !self.named_remotely.is_empty() && self.named_remotely.contains(&self.hash(uid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_resources_are_listed_less_often() {
        for (resources, seconds) in [(0, 60), (1, 60), (32, 60), (33, 120), (500, 960)] {
            assert_eq!(interval(resources), Duration::from_secs(seconds));
        }
    }

    #[test]
    fn a_name_that_leaves_its_collection_is_not_plain() {
        for (name, plain) in [("a-1", true), ("", false), ("a/b", false), ("..", false)] {
            assert_eq!(is_plain(name), plain, "{name}");
        }
    }
}

//! Searches other servers for the dependents of owners that are being deleted.
//!
//! Jobs that ask at about the same time share a search, and one search runs at a time. It begins after those jobs asked, so
//! it finds every dependent that existed by then.

use super::dependent::RemoteDependent;
use super::gather::Gather;
use crate::Client;
use crate::remote::{self, AT_ONCE, GroupResource, RemoteResource};
use bareboat_api::{Status, Str};
use futures_util::stream::{self, StreamExt as _};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a search may take. What is not listed by then is a gap.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a resource is not listed again after its list took too long.
const SILENCE: Duration = Duration::from_secs(60);

/// The searches of a collector.
#[derive(Default)]
pub(in crate::garbage) struct Searches {
    /// Searches by the namespace of the owners. Jobs add the uids of owners.
    shared: Arc<Gather<Option<Str>, Str, Found>>,
    /// The resources whose lists took too long, and when.
    silent: Mutex<HashMap<GroupResource, Instant>>,
}

/// The result of a search.
#[derive(Default)]
pub(super) struct Found {
    dependents: Vec<RemoteDependent>,
    pub(super) gaps: Gaps,
    /// How many resources were listed.
    pub(super) resources: usize,
}

impl Found {
    /// The objects that name an owner.
    pub(super) fn naming(&self, uid: &str) -> impl Iterator<Item = &RemoteDependent> {
        let dependents = self.dependents.iter();
        dependents.filter(move |dependent| dependent.names(uid))
    }
}

/// What a search could not see.
#[derive(Default)]
pub(super) struct Gaps {
    /// The resources that were listed, and those that were not searched because they cannot have such dependents.
    seen: HashSet<GroupResource>,
    /// The resources that could not be listed.
    failed: HashSet<GroupResource>,
    /// The groups with a version that is not available. Their resources may not be known.
    unavailable: HashSet<Str>,
}

impl Gaps {
    /// Whether the objects of a resource may exist and were not listed.
    pub(super) fn has(&self, resource: &GroupResource) -> bool {
        self.failed.contains(resource)
            || self.unavailable.contains(&resource.0) && !self.seen.contains(resource)
    }

    /// A resource was listed.
    fn close(&mut self, resource: GroupResource) {
        self.failed.remove(&resource);
        self.seen.insert(resource);
    }
}

/// Returns the resources that may have dependents of owners in a namespace, or of owners that are in none, and the gaps
/// while none of them is listed.
fn plan(
    resources: Vec<RemoteResource>,
    unavailable: HashSet<Str>,
    namespace: Option<&str>,
) -> (Vec<RemoteResource>, Gaps) {
    // An owner in a namespace has dependents only there.
    let may_depend = |resource: &RemoteResource| resource.namespaced || namespace.is_none();
    let (concerned, others): (Vec<_>, Vec<_>) = resources.into_iter().partition(may_depend);
    let names = |resources: &[RemoteResource]| {
        let names = resources.iter().map(RemoteResource::group_resource);
        names.collect::<HashSet<GroupResource>>()
    };
    let gaps = Gaps {
        seen: names(&others),
        failed: names(&concerned),
        unavailable,
    };
    (concerned, gaps)
}

impl Searches {
    /// Finds the objects of other servers that name an owner, and maybe others. Those of an owner in a namespace are in
    /// that namespace.
    pub(super) async fn find(
        self: &Arc<Self>,
        client: &Client,
        namespace: Option<&str>,
        uid: &str,
    ) -> Arc<Found> {
        if !client.server().has_remote_versions() {
            return Arc::default();
        }
        let (searches, client) = (self.clone(), client.clone());
        let place = namespace.map(Str::new);
        let search = {
            let place = place.clone();
            move |owners| async move { searches.run(&client, place.as_deref(), owners).await }
        };
        self.shared.ask(place, Str::new(uid), search).await
    }

    /// Lists all resources again, because an APIService changed.
    pub(in crate::garbage) fn forget_silence(&self) {
        self.silent.lock().clear();
    }

    async fn run(&self, client: &Client, namespace: Option<&str>, owners: HashSet<Str>) -> Found {
        let owners = Arc::new(owners);
        let (resources, unavailable) = remote::collectable(client.server());
        let (concerned, gaps) = plan(resources, unavailable, namespace);
        let mut found = Found {
            dependents: Vec::new(),
            resources: concerned.len(),
            gaps,
        };
        let lists = concerned.into_iter().map(|resource| {
            let owners = owners.clone();
            let is_wanted = move |dependent: &RemoteDependent| {
                let mut named = dependent.owners.iter();
                named.any(|owner| owners.contains(&*owner.uid))
            };
            async move {
                let listed = self.list(client, &resource, namespace, is_wanted).await;
                (resource, listed)
            }
        });
        let mut lists = stream::iter(lists).buffer_unordered(AT_ONCE);
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while let Ok(Some((resource, listed))) =
            tokio::time::timeout_at(deadline, lists.next()).await
        {
            match listed {
                Ok(dependents) => {
                    found.gaps.close(resource.group_resource());
                    found.dependents.extend(dependents);
                }
                Err(status) => {
                    tracing::debug!(resource = resource.name(), %status, "cannot list objects of another server");
                }
            }
        }
        drop(lists);
        found
    }

    /// Lists the objects of a resource that name owners and meet a condition, in one namespace or in all of them.
    pub(super) async fn list(
        &self,
        client: &Client,
        resource: &RemoteResource,
        namespace: Option<&str>,
        is_wanted: impl Fn(&RemoteDependent) -> bool + Send + 'static,
    ) -> Result<Vec<RemoteDependent>, Status> {
        let name = resource.group_resource();
        let silent = self.silent.lock().get(&name).map(Instant::elapsed);
        if silent.is_some_and(|since| since < SILENCE) {
            return Err(Status::unavailable("its last list took too long"));
        }
        let read = {
            let resource = resource.clone();
            move |metadata| RemoteDependent::read(&resource, metadata).filter(|it| is_wanted(it))
        };
        let listed = remote::list(client, &resource.collection(namespace), read).await;
        let mut silent = self.silent.lock();
        match &listed {
            Err(status) if status.code == 504 => silent.insert(name, Instant::now()),
            _ => silent.remove(&name),
        };
        listed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bareboat_api::value;
    use bareboat_server::discovery::RemoteVersion;

    fn resource(plural: &str, scope: &str) -> RemoteResource {
        let version = RemoteVersion {
            group: Str::new("a.io"),
            version: Str::new("v1"),
            group_priority: 1,
            version_priority: 1,
            resources: Some(vec![value!({"resource": plural, "scope": scope})]),
            last_resources: None,
        };
        let resources = remote::resources_of(&version);
        resources.expect("they are known").remove(0)
    }

    fn name(group: &str, plural: &str) -> GroupResource {
        (Str::new(group), Str::new(plural))
    }

    #[test]
    fn what_may_exist_and_was_not_listed_is_a_gap() {
        let resources = || {
            vec![
                resource("ships", "Namespaced"),
                resource("fleets", "Cluster"),
            ]
        };
        // Group a.io has another version that is not available, and so has group b.io.
        let unavailable: HashSet<Str> = ["a.io", "b.io"].map(Str::new).into();
        let (concerned, mut gaps) = plan(resources(), unavailable.clone(), Some("default"));
        assert_eq!(
            concerned.len(),
            1,
            "a fleet cannot have an owner in a namespace"
        );
        let (ships, fleets) = (name("a.io", "ships"), name("a.io", "fleets"));
        assert!(gaps.has(&ships) && !gaps.has(&fleets));
        gaps.close(ships.clone());
        assert!(!gaps.has(&ships));
        assert!(
            gaps.has(&name("a.io", "boats")),
            "only the other version has it"
        );
        assert!(gaps.has(&name("b.io", "ships")));
        assert!(!gaps.has(&name("c.io", "ships")), "its group is gone");
        let (concerned, gaps) = plan(resources(), unavailable, None);
        assert_eq!(concerned.len(), 2);
        assert!(gaps.has(&fleets));
    }
}

//! Keeps an APIService for every group version that this server serves: those of built-in kinds from the start, those of
//! custom kinds as definitions come and go. APIServices of users are left alone.
//!
//! Whether remote API servers can be reached is checked in `availability`.

mod priorities;

use crate::Client;
use crate::controller::Controller;
use crate::feed::Listener;
use crate::identity::Identity;
use crate::kinds::{DEFINITIONS, join, read};
use crate::queue::{Queue, Verdict};
use crate::startup::Context;
use bareboat_api::kind::Origin;
use bareboat_api::{Object, Status, Value, value};
use bareboat_server::Server;
use bareboat_server::kinds::catalog::Table;
use bareboat_storage::{Entry, Event, EventKind, Resource, Store};
use std::collections::HashSet;
use std::sync::Arc;

/// The store resource of APIServices.
const SERVICES: &str = "apiregistration.k8s.io/apiservices";
const PATH: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const LABEL: &str = "kube-aggregator.kubernetes.io/automanaged";
/// The group of APIServices. It has no APIService.
const OWN_GROUP: &str = "apiregistration.k8s.io";

/// Notices group versions that come or go.
pub(crate) struct ApiServiceListener {
    queue: Arc<Queue<Arc<str>>>,
    server: Server,
    /// Group versions that were added to the queue. A further kind in one of them changes nothing.
    known: HashSet<Arc<str>>,
}

impl ApiServiceListener {
    fn on_definition(&mut self, event: &Event) {
        let Some((plural, group)) = event.key().split_once('.') else {
            return;
        };
        let server = self.server.clone();
        let table = server.catalog().table();
        let gone = event.kind == EventKind::Deleted;
        let respecified = event.prev.as_ref().is_some_and(|prev| {
            !gone && prev.facets().generation != event.entry.facets().generation
        });
        if gone || respecified {
            // A group version may have lost its last kind.
            let lost = |name: &Arc<str>| {
                let (version, of) = name.split_once('.').unwrap_or_default();
                of == group && table.any_of(group, version).is_none()
            };
            let lost: Vec<Arc<str>> = self
                .known
                .iter()
                .filter(|name| lost(name))
                .cloned()
                .collect();
            for name in lost {
                self.known.remove(&name);
                self.queue.add(name);
            }
        }
        let Some(backing) = table.find(group, plural).filter(|_| !gone) else {
            return;
        };
        let versions = backing.kind().versions.iter();
        for version in versions.filter(|version| version.served) {
            let name = format!("{}.{group}", version.name);
            if !self.known.contains(name.as_str()) {
                let name: Arc<str> = name.into();
                self.known.insert(name.clone());
                self.queue.add(name);
            }
        }
    }
}

impl Listener for ApiServiceListener {
    fn reset(&mut self, store: &Store) {
        self.known.clear();
        let table = self.server.catalog().table();
        for backing in table.iter() {
            let kind = backing.kind();
            for version in kind.versions.iter().filter(|version| version.served) {
                let name: Arc<str> = format!("{}.{}", version.name, kind.group).into();
                if self.known.insert(name.clone()) {
                    self.queue.add(name);
                }
            }
        }
        // APIServices of group versions that went while no controller ran.
        for entry in store.resource(SERVICES).snapshot().range("", None) {
            if !self.known.contains(entry.key()) && managed(entry).is_some() {
                self.queue.add(entry.key().into());
            }
        }
    }

    fn on_event(&mut self, resource: &Arc<Resource>, event: &Event) {
        match resource.name() {
            DEFINITIONS => self.on_definition(event),
            // Those of built-in kinds are repaired at the next start.
            SERVICES if event.kind != EventKind::Added => {
                let before = event.prev.as_deref().and_then(managed);
                // A user's APIService is gone, and this server serves the version again.
                let given_back = event.kind == EventKind::Deleted
                    && before.is_none()
                    && self.known.contains(event.key());
                if given_back || before == Some("true") || managed(&event.entry) == Some("true") {
                    self.queue.add(event.key().into());
                }
            }
            _ => {}
        }
    }
}

/// The value of the label of an APIService that a controller manages.
fn managed(entry: &Entry) -> Option<&str> {
    let facets = entry.facets();
    let value = facets.label(LABEL)?;
    matches!(value, "true" | "onstart").then_some(value)
}

/// Keeps one APIService for each group version that this server serves. Does not change APIServices of users. Keys are
/// their names.
pub(crate) struct ApiServiceRegistrar {
    client: Client,
}

impl Controller for ApiServiceRegistrar {
    const NAME: &'static str = "api-services";
    const MANAGER: &'static str = "kube-apiserver";
    const PARALLEL: usize = 64;
    type Key = Arc<str>;
    type Listener = ApiServiceListener;

    fn identity(_: &Table) -> Identity {
        let rules = ["create delete update | apiregistration.k8s.io | apiservices"];
        Identity::own("bareboat-api-services", &rules)
    }

    fn new(
        context: &mut Context<'_>,
        queue: Arc<Queue<Arc<str>>>,
    ) -> (ApiServiceRegistrar, ApiServiceListener) {
        let client = context.client.clone();
        let listener = ApiServiceListener {
            queue,
            server: context.server.clone(),
            known: HashSet::new(),
        };
        (ApiServiceRegistrar { client }, listener)
    }

    async fn reconcile(&self, name: Arc<str>) -> Verdict {
        match self.register(&name).await {
            Ok(()) => Verdict::Done,
            Err(status) if matches!(status.code, 404 | 409) => Verdict::Retry,
            Err(status) => {
                tracing::warn!(%name, %status, "cannot write an APIService");
                Verdict::Retry
            }
        }
    }
}

impl ApiServiceRegistrar {
    async fn register(&self, name: &str) -> Result<(), Status> {
        let server = self.client.server();
        let wanted = {
            let table = server.catalog().table();
            if table.find(OWN_GROUP, "apiservices").is_none() {
                return Ok(());
            }
            wanted(&table, name)
        };
        let live = server.store().resource(SERVICES).get(name);
        match (wanted, live) {
            (None, None) => Ok(()),
            (Some(wanted), None) => self.client.ensure(PATH, &wanted).await,
            // It belongs to a user.
            (_, Some(live)) if managed(&live).is_none() => Ok(()),
            (None, Some(live)) => {
                let uid = &*live.facets().uid;
                let options = value!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}});
                self.client.remove(&join(PATH, name), &options).await
            }
            (Some(wanted), Some(live)) => self.repair(name, wanted, read(&live)?).await,
        }
    }

    async fn repair(&self, name: &str, wanted: Value, mut live: Object) -> Result<(), Status> {
        let label = wanted.at(&["metadata", "labels", LABEL]);
        let spec = wanted.get("spec");
        if live.label(LABEL) == label.and_then(Value::as_str) && live.get("spec") == spec {
            return Ok(());
        }
        if let (Some(label), Some(spec)) = (label, spec) {
            let labels = live.metadata_mut().object_mut("labels");
            labels.insert(LABEL, label.clone());
            live.map_mut().insert("spec", spec.clone());
        }
        let path = join(PATH, name);
        self.client.update(&path, live.value()).await.map(|_| ())
    }
}

/// The APIService that a group version should have, if this server serves it.
fn wanted(table: &Table, name: &str) -> Option<Value> {
    let (version, group) = name.split_once('.')?;
    if group == OWN_GROUP {
        return None;
    }
    let kind = table.any_of(group, version)?;
    let (label, of_version) = match kind.origin {
        Origin::BuiltIn => ("onstart", priorities::built_in(group, version)),
        Origin::Custom => ("true", priorities::CUSTOM),
    };
    let of_group = i64::from(kind.group_priority);
    let mut spec = value!({
        "version": version,
        "groupPriorityMinimum": of_group,
        "versionPriority": of_version,
    });
    if !group.is_empty() {
        spec.make_object().insert("group", Value::string(group));
    }
    let mut metadata = value!({"name": name});
    let labels = metadata.make_object().object_mut("labels");
    labels.insert(LABEL, Value::string(label));
    Some(value!({
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": metadata,
        "spec": spec,
    }))
}

//! One APIService for every version of a group that is served here: those of built-in kinds from the start on, those of
//! custom kinds as they come and go. What users registered themselves is theirs.
//!
//! Whether remote ones can be reached is not looked at here.

mod priorities;

use crate::Client;
use crate::feed::Listener;
use crate::kinds::{DEFINITIONS, join, read};
use crate::queue::{Queue, Verdict};
use bareboat_api::{Object, Status, Value, value};
use bareboat_server::Server;
use bareboat_server::kinds::catalog::Table;
use bareboat_storage::{Entry, Event, EventKind, Resource, Store};
use std::collections::HashSet;
use std::sync::Arc;

/// Where they are stored.
const SERVICES: &str = "apiregistration.k8s.io/apiservices";
const PATH: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const LABEL: &str = "kube-aggregator.kubernetes.io/automanaged";
/// Served by the aggregator itself, which nobody asks for itself.
const OWN_GROUP: &str = "apiregistration.k8s.io";

/// Notes which versions of groups came or went.
pub(crate) struct Ear {
    queue: Arc<Queue<Arc<str>>>,
    server: Server,
    /// Versions of custom kinds that were noted; another kind in one of them changes nothing.
    noted: HashSet<Arc<str>>,
}

impl Ear {
    pub(crate) fn new(queue: Arc<Queue<Arc<str>>>, server: Server) -> Ear {
        Ear {
            queue,
            server,
            noted: HashSet::new(),
        }
    }

    fn definition(&mut self, event: &Event) {
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
            // A version may have lost its last kind.
            let lost = |name: &Arc<str>| {
                let (version, of) = name.split_once('.').unwrap_or_default();
                of == group && table.any_of(group, version).is_none()
            };
            let lost: Vec<Arc<str>> = self
                .noted
                .iter()
                .filter(|name| lost(name))
                .cloned()
                .collect();
            for name in lost {
                self.noted.remove(&name);
                self.queue.add(name);
            }
        }
        let Some(serving) = table.find(group, plural).filter(|_| !gone) else {
            return;
        };
        let versions = serving.kind().versions.iter();
        for version in versions.filter(|version| version.served) {
            let name = format!("{}.{group}", version.name);
            if !self.noted.contains(name.as_str()) {
                let name: Arc<str> = name.into();
                self.noted.insert(name.clone());
                self.queue.add(name);
            }
        }
    }
}

impl Listener for Ear {
    fn reset(&mut self, store: &Store) {
        self.noted.clear();
        let table = self.server.catalog().table();
        for serving in table.iter() {
            let kind = serving.kind();
            for version in kind.versions.iter().filter(|version| version.served) {
                let name: Arc<str> = format!("{}.{}", version.name, kind.group).into();
                if self.noted.insert(name.clone()) {
                    self.queue.add(name);
                }
            }
        }
        // Those of versions that went while nobody looked.
        for entry in store.resource(SERVICES).snapshot().range("", None) {
            if !self.noted.contains(entry.key()) && managed(entry).is_some() {
                self.queue.add(entry.key().into());
            }
        }
    }

    fn heard(&mut self, resource: &Arc<Resource>, event: &Event) {
        match resource.name() {
            DEFINITIONS => self.definition(event),
            // Built-in ones are set right at the next start.
            SERVICES if event.kind != EventKind::Added => {
                let before = event.prev.as_deref().and_then(managed);
                if before == Some("true") || managed(&event.entry) == Some("true") {
                    self.queue.add(event.key().into());
                }
            }
            _ => {}
        }
    }
}

/// How an APIService is looked after, if it is.
fn managed(entry: &Entry) -> Option<&str> {
    let facets = entry.facets();
    let value = facets.label(LABEL)?;
    matches!(value, "true" | "onstart").then_some(value)
}

/// Registers and takes back.
pub(crate) struct Worker {
    client: Client,
}

impl Worker {
    pub(crate) fn new(client: &Client) -> Worker {
        Worker {
            client: client.named("kube-apiserver"),
        }
    }

    pub(crate) async fn look(&self, name: Arc<str>) -> Verdict {
        match self.register(&name).await {
            Ok(()) => Verdict::Done,
            Err(status) if matches!(status.code, 404 | 409) => Verdict::Retry,
            Err(status) => {
                tracing::warn!(%name, %status, "an APIService could not be kept");
                Verdict::Retry
            }
        }
    }

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
            (Some(wanted), None) => match self.client.create(PATH, &wanted).await {
                Err(status) if status.reason != "AlreadyExists" => Err(status),
                _ => Ok(()),
            },
            // Somebody else's.
            (_, Some(live)) if managed(&live).is_none() => Ok(()),
            (None, Some(live)) => {
                let uid = &*live.facets().uid;
                let options = value!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}});
                self.client.remove(&join(PATH, name), &options).await
            }
            (Some(wanted), Some(live)) => self.set_right(name, wanted, read(&live)?).await,
        }
    }

    async fn set_right(&self, name: &str, wanted: Value, mut live: Object) -> Result<(), Status> {
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

/// The APIService of a version of a group, if that is served here.
fn wanted(table: &Table, name: &str) -> Option<Value> {
    let (version, group) = name.split_once('.')?;
    if group == OWN_GROUP {
        return None;
    }
    let kind = table.any_of(group, version)?;
    let (label, of_version) = match kind.custom {
        false => ("onstart", priorities::built_in(group, version)),
        true => ("true", priorities::CUSTOM),
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

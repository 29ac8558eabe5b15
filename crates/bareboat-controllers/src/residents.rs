//! What lives in every namespace: the service account `default`, and the certificates by which clients inside know the
//! server.

use crate::Client;
use crate::feed::Listener;
use crate::kinds::{NAMESPACES, is_deleting};
use crate::queue::{Queue, Verdict};
use bareboat_api::{Status, Value, value};
use bareboat_storage::{Entry, Event, EventKind, Resource, Store};
use std::sync::Arc;

const ACCOUNTS: &str = "core/serviceaccounts";
const ACCOUNT: &str = "default";
const CONFIGS: &str = "core/configmaps";
const CERTIFICATES: &str = "kube-root-ca.crt";
const DESCRIPTION: &str =
    "The certificates by which clients in this namespace recognize the API server";

/// Notes which namespaces may lack something.
pub(crate) struct Ear {
    queue: Arc<Queue<Arc<str>>>,
}

impl Ear {
    pub(crate) fn new(queue: Arc<Queue<Arc<str>>>) -> Ear {
        Ear { queue }
    }
}

impl Listener for Ear {
    fn reset(&mut self, store: &Store) {
        for entry in store.resource(NAMESPACES).snapshot().range("", None) {
            self.queue.add(entry.key().into());
        }
    }

    fn heard(&mut self, resource: &Arc<Resource>, event: &Event) {
        let entry = &event.entry;
        let concerned = match resource.name() {
            NAMESPACES => event.kind == EventKind::Added,
            ACCOUNTS => event.kind == EventKind::Deleted && entry.name() == ACCOUNT,
            CONFIGS => event.kind != EventKind::Added && entry.name() == CERTIFICATES,
            _ => false,
        };
        if concerned {
            let namespace = entry.namespace().unwrap_or(entry.key());
            self.queue.add(namespace.into());
        }
    }
}

/// Creates what is missing.
pub(crate) struct Worker {
    client: Client,
    certificates: Option<String>,
}

impl Worker {
    pub(crate) fn new(client: &Client, certificates: Option<String>) -> Worker {
        Worker {
            client: client.named("namespace-residents"),
            certificates,
        }
    }

    pub(crate) async fn look(&self, namespace: Arc<str>) -> Verdict {
        if !self.is_active(&namespace) {
            return Verdict::Done;
        }
        match self.complete(&namespace).await {
            Ok(()) => Verdict::Done,
            Err(_) if !self.is_active(&namespace) => Verdict::Done,
            // Somebody else was faster.
            Err(status) if matches!(status.code, 404 | 409) => Verdict::Retry,
            Err(status) => {
                tracing::warn!(%namespace, %status, "a namespace could not be completed");
                Verdict::Retry
            }
        }
    }

    async fn complete(&self, namespace: &str) -> Result<(), Status> {
        let place = format!("/api/v1/namespaces/{namespace}");
        if self.serves("serviceaccounts") && self.stored(ACCOUNTS, namespace, ACCOUNT).is_none() {
            let account = value!({
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": ACCOUNT, "namespace": namespace},
            });
            create(&self.client, &format!("{place}/serviceaccounts"), &account).await?;
        }
        let Some(certificates) = self
            .certificates
            .as_deref()
            .filter(|_| self.serves("configmaps"))
        else {
            return Ok(());
        };
        let Some(entry) = self.stored(CONFIGS, namespace, CERTIFICATES) else {
            let config = value!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {
                    "name": CERTIFICATES,
                    "namespace": namespace,
                    "annotations": {"kubernetes.io/description": DESCRIPTION},
                },
                "data": {"ca.crt": certificates},
            });
            return create(&self.client, &format!("{place}/configmaps"), &config).await;
        };
        let wanted = value!({"ca.crt": certificates});
        let parsed = bareboat_wire::json::parse(entry.json()).map_err(Status::internal)?;
        if parsed.value.get("data") == Some(&wanted) || is_deleting(&entry) {
            return Ok(());
        }
        let mut config = parsed.value;
        config.make_object().insert("data", wanted);
        let path = format!("{place}/configmaps/{CERTIFICATES}");
        self.client.update(&path, &config).await.map(|_| ())
    }

    fn is_active(&self, namespace: &str) -> bool {
        let store = self.client.server().store();
        let live = store.resource(NAMESPACES).get(namespace);
        live.is_some_and(|entry| !is_deleting(&entry))
    }

    fn serves(&self, plural: &str) -> bool {
        let table = self.client.server().catalog().table();
        table.find("", plural).is_some()
    }

    fn stored(&self, store: &str, namespace: &str, name: &str) -> Option<Arc<Entry>> {
        let resource = self.client.server().store().resource(store);
        resource.get(&format!("{namespace}/{name}"))
    }
}

async fn create(client: &Client, path: &str, object: &Value) -> Result<(), Status> {
    match client.create(path, object).await {
        Err(status) if status.reason != "AlreadyExists" => Err(status),
        _ => Ok(()),
    }
}

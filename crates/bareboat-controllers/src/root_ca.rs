//! Keeps a config map `kube-root-ca.crt` in every namespace. It holds the CA certificates that verify the server's
//! certificate, for clients inside the namespace.

use crate::Client;
use crate::controller::Controller;
use crate::every_namespace::EveryNamespace;
use crate::identity::Identity;
use crate::kinds::{is_active, is_deleting, read};
use crate::options::Options;
use crate::queue::{Queue, Verdict};
use crate::startup::Context;
use bareboat_api::{Status, value};
use bareboat_server::Server;
use bareboat_server::kinds::catalog::Table;
use std::sync::Arc;

const CONFIG_MAPS: &str = "core/configmaps";
const NAME: &str = "kube-root-ca.crt";
const DESCRIPTION: &str =
    "The CA certificates that verify the API server's certificate, for clients in this namespace";

/// Writes the config maps. Keys are names of namespaces.
pub(crate) struct RootCaPublisher {
    client: Client,
    certificates: String,
}

impl Controller for RootCaPublisher {
    const NAME: &'static str = "root-ca";
    const MANAGER: &'static str = "root-ca-cert-publisher";
    const PARALLEL: usize = 16;
    type Key = Arc<str>;
    type Listener = EveryNamespace;

    fn identity(_: &Table) -> Identity {
        Identity::kubernetes("root-ca-cert-publisher")
    }

    fn has_work(server: &Server, options: &Options) -> bool {
        let table = server.catalog().table();
        options.root_ca.is_some() && table.find("", "configmaps").is_some()
    }

    fn new(
        context: &mut Context<'_>,
        queue: Arc<Queue<Arc<str>>>,
    ) -> (RootCaPublisher, EveryNamespace) {
        let publisher = RootCaPublisher {
            client: context.client.clone(),
            certificates: context.options.root_ca.clone().unwrap_or_default(),
        };
        let listener = EveryNamespace {
            queue,
            resource: CONFIG_MAPS,
            name: NAME,
        };
        (publisher, listener)
    }

    async fn reconcile(&self, namespace: Arc<str>) -> Verdict {
        let server = self.client.server();
        if !is_active(server, &namespace) {
            return Verdict::Done;
        }
        match self.publish(&namespace).await {
            Ok(()) => Verdict::Done,
            Err(_) if !is_active(server, &namespace) => Verdict::Done,
            // Another client changed or deleted it at the same time.
            Err(status) if matches!(status.code, 404 | 409) => Verdict::Retry,
            Err(status) => {
                tracing::warn!(%namespace, %status, "cannot write the config map {NAME}");
                Verdict::Retry
            }
        }
    }
}

impl RootCaPublisher {
    async fn publish(&self, namespace: &str) -> Result<(), Status> {
        let collection = format!("/api/v1/namespaces/{namespace}/configmaps");
        let data = value!({"ca.crt": (self.certificates.as_str())});
        let store = self.client.server().store().resource(CONFIG_MAPS);
        let Some(entry) = store.get(&format!("{namespace}/{NAME}")) else {
            let config = value!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {
                    "name": NAME,
                    "namespace": namespace,
                    "annotations": {"kubernetes.io/description": DESCRIPTION},
                },
                "data": data,
            });
            return self.client.ensure(&collection, &config).await;
        };
        let mut config = read(&entry)?;
        if config.get("data") == Some(&data) || is_deleting(&entry) {
            return Ok(());
        }
        config.map_mut().insert("data", data);
        let path = format!("{collection}/{NAME}");
        self.client.update(&path, config.value()).await.map(|_| ())
    }
}

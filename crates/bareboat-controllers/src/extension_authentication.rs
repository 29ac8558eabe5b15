//! Publishes the config map `kube-system/extension-apiserver-authentication`, from which extension API servers learn how
//! to authenticate requests that this server passes on.

use crate::Client;
use crate::controller::Controller;
use crate::feed::Listener;
use crate::identity::Identity;
use crate::options::{FrontProxy, Options};
use crate::queue::{Queue, Verdict};
use crate::startup::Context;
use bareboat_api::{Status, Value, value};
use bareboat_server::Server;
use bareboat_server::kinds::catalog::Table;
use bareboat_storage::{Event, EventKind, Resource, Store};
use std::sync::Arc;

const NAME: &str = "extension-apiserver-authentication";
const COLLECTION: &str = "/api/v1/namespaces/kube-system/configmaps";
const CONFIG_MAPS: &str = "core/configmaps";
const KEY: &str = "kube-system/extension-apiserver-authentication";

/// Keeps the config map as it should be. Certificates may have changed since the last start.
pub(crate) struct Publisher {
    client: Client,
    data: Value,
}

impl Controller for Publisher {
    const NAME: &'static str = "extension-authentication";
    const MANAGER: &'static str = "kube-apiserver";
    const PARALLEL: usize = 1;
    type Key = ();
    type Listener = ConfigMapListener;

    fn identity(_: &Table) -> Identity {
        let rules = [
            "create | core | configmaps",
            "patch | core | configmaps | extension-apiserver-authentication",
        ];
        Identity::own("bareboat-extension-authentication", &[]).and_in("kube-system", &rules)
    }

    fn has_work(server: &Server, options: &Options) -> bool {
        let table = server.catalog().table();
        options.front_proxy.is_some() && table.find("", "configmaps").is_some()
    }

    fn new(context: &mut Context<'_>, queue: Arc<Queue<()>>) -> (Publisher, ConfigMapListener) {
        let publisher = Publisher {
            client: context.client.clone(),
            data: context
                .options
                .front_proxy
                .as_ref()
                .map_or(Value::Null, data),
        };
        (publisher, ConfigMapListener { queue })
    }

    async fn before_start(&self) {
        self.reconcile(()).await;
    }

    async fn reconcile(&self, (): ()) -> Verdict {
        match self.publish().await {
            Ok(()) => Verdict::Done,
            Err(status) => {
                tracing::error!(%status, "cannot write the config map {KEY}");
                Verdict::Retry
            }
        }
    }
}

impl Publisher {
    async fn publish(&self) -> Result<(), Status> {
        let store = self.client.server().store().resource(CONFIG_MAPS);
        let Some(entry) = store.get(KEY) else {
            let config = value!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": NAME, "namespace": "kube-system"},
                "data": (self.data.clone()),
            });
            return self.client.ensure(COLLECTION, &config).await;
        };
        let live = crate::kinds::read(&entry)?;
        let wanted = self.data.as_object();
        let differs = wanted.is_some_and(|wanted| {
            wanted
                .iter()
                .any(|(key, value)| live.at(&["data", key]) != Some(value))
        });
        if !differs {
            return Ok(());
        }
        let patch = value!({"data": (self.data.clone())});
        let path = format!("{COLLECTION}/{NAME}");
        self.client.merge(&path, &patch).await.map(|_| ())
    }
}

fn data(front_proxy: &FrontProxy) -> Value {
    let names: Value = front_proxy.names.iter().map(String::as_str).collect();
    let list = |value: Value| value.to_string();
    value!({
        "client-ca-file": (front_proxy.client_ca.as_str()),
        "requestheader-client-ca-file": (front_proxy.ca.as_str()),
        "requestheader-allowed-names": (list(names)),
        "requestheader-username-headers": (list(value!(["X-Remote-User"]))),
        "requestheader-uid-headers": (list(value!(["X-Remote-Uid"]))),
        "requestheader-group-headers": (list(value!(["X-Remote-Group"]))),
        "requestheader-extra-headers-prefix": (list(value!(["X-Remote-Extra-"]))),
    })
}

/// Notices when the config map is changed or deleted.
pub(crate) struct ConfigMapListener {
    queue: Arc<Queue<()>>,
}

impl Listener for ConfigMapListener {
    fn reset(&mut self, _: &Store) {
        self.queue.add(());
    }

    fn on_event(&mut self, resource: &Arc<Resource>, event: &Event) {
        if resource.name() == CONFIG_MAPS && event.kind != EventKind::Added && event.key() == KEY {
            self.queue.add(());
        }
    }
}

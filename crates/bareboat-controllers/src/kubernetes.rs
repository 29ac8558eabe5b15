//! Keeps the service `default/kubernetes`, its endpoints, and the ServiceCIDR `kubernetes`. Clients inside a cluster find
//! the server by this service.
//!
//! Which addresses services may have is a setting of the kind Service, not of this controller. The endpoints name all
//! running servers of a shared store.

mod endpoints;
mod servers;

use crate::Client;
use crate::conditions::now;
use crate::controller::Controller;
use crate::feed::Listener;
use crate::identity::Identity;
use crate::options::Options;
use crate::queue::{Queue, Verdict};
use crate::service_cidrs;
use crate::startup::Context;
use bareboat_api::{Object, Status, Value, value};
use bareboat_server::Server;
use bareboat_server::kinds::catalog::Table;
use bareboat_storage::{Event, EventKind, Resource, Store};
use http::Method;
use parking_lot::Mutex;
use servers::Servers;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

const SERVICES: &str = "core/services";
const KEY: &str = "default/kubernetes";
const NETWORKS: &str = "/apis/networking.k8s.io/v1/servicecidrs";
const SERVICE: &str = "/api/v1/namespaces/default/services";
const ENDPOINTS: &str = "/api/v1/namespaces/default/endpoints";
const STORED_SLICES: &str = "discovery.k8s.io/endpointslices";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

/// The service `default/kubernetes` and the networks of services.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubernetesService {
    /// The networks of services, the preferred one first.
    pub networks: Vec<String>,
    /// The address of the service.
    pub address: IpAddr,
    /// The port the server listens on; 0 while it is not known.
    pub port: u16,
    /// The address at which other machines reach the server. Without one the service has no endpoints.
    pub endpoint: Option<IpAddr>,
}

impl Default for KubernetesService {
    fn default() -> KubernetesService {
        KubernetesService {
            networks: Vec::new(),
            address: Ipv4Addr::UNSPECIFIED.into(),
            port: 0,
            endpoint: None,
        }
    }
}

/// Keeps the service as it should be.
pub(crate) struct ServiceKeeper {
    client: Client,
    wanted: Arc<Mutex<KubernetesService>>,
    /// The servers of a shared store.
    servers: Option<Arc<Servers>>,
}

impl Controller for ServiceKeeper {
    const NAME: &'static str = "kubernetes-service";
    const MANAGER: &'static str = "kube-apiserver";
    const PARALLEL: usize = 1;
    const EVERYWHERE: bool = true;
    type Key = ();
    type Listener = ServiceListener;

    fn identity(_: &Table) -> Identity {
        let cluster = [
            "create get update | networking.k8s.io | servicecidrs",
            "patch | networking.k8s.io | servicecidrs/status",
        ];
        let namespace = [
            "create get patch | core | endpoints services",
            "create delete get patch | discovery.k8s.io | endpointslices",
        ];
        let (elsewhere, leases) = servers::RIGHTS;
        Identity::own("bareboat-kubernetes-service", &cluster)
            .and_in("default", &namespace)
            .and_in(elsewhere, &[leases])
    }

    fn has_work(_: &Server, options: &Options) -> bool {
        options.kubernetes.is_some()
    }

    fn new(context: &mut Context<'_>, queue: Arc<Queue<()>>) -> (ServiceKeeper, ServiceListener) {
        let wanted = context.options.kubernetes.clone().unwrap_or_default();
        let wanted = Arc::new(Mutex::new(wanted));
        let table = context.server.catalog().table();
        let is_shared = context.server.store().is_shared()
            && table.find("coordination.k8s.io", "leases").is_some();
        let servers = is_shared.then(|| Arc::new(Servers::new(context.client.clone())));
        if let Some(servers) = servers.clone() {
            context.on_stop(move || {
                let servers = servers.clone();
                Box::pin(async move { servers.leave().await })
            });
        }
        let keeper = ServiceKeeper {
            client: context.client.clone(),
            wanted: wanted.clone(),
            servers,
        };
        let listener = ServiceListener {
            queue: queue.clone(),
        };
        context.on_listening(move |address| {
            let ip = address.ip();
            let mut wanted = wanted.lock();
            wanted.port = address.port();
            wanted.endpoint = (!ip.is_loopback() && !ip.is_unspecified()).then_some(ip);
            queue.add(());
        });
        (keeper, listener)
    }

    async fn before_start(&self) {
        self.reconcile(()).await;
    }

    async fn reconcile(&self, (): ()) -> Verdict {
        let wanted = self.wanted.lock().clone();
        if wanted.port == 0 {
            // The port is known as soon as the server listens.
            return Verdict::Done;
        }
        match self.ensure(&wanted).await {
            Ok(None) => Verdict::Done,
            Ok(Some(wait)) => Verdict::After(wait),
            Err(status) => {
                // Another server wrote it, or the namespace may not exist yet.
                if matches!(status.code, 404 | 409) {
                    return Verdict::Retry;
                }
                tracing::warn!(%status, "cannot write the service default/kubernetes");
                Verdict::Retry
            }
        }
    }
}

impl ServiceKeeper {
    /// Writes what differs. Returns when to look again, if other servers may come and go.
    async fn ensure(&self, wanted: &KubernetesService) -> Result<Option<Duration>, Status> {
        if self.serves("networking.k8s.io", "servicecidrs") {
            self.ensure_networks(wanted).await?;
        }
        if self.serves("", "services") {
            self.ensure_service(wanted).await?;
        }
        let Some(ip) = wanted.endpoint else {
            return Ok(None);
        };
        let own = SocketAddr::new(ip, wanted.port);
        let (servers, wait) = match &self.servers {
            Some(servers) => {
                let (running, wait) = servers.running(own).await?;
                (running, Some(wait))
            }
            None => (BTreeSet::from([own]), None),
        };
        if self.serves("", "endpoints") {
            let object = endpoints::endpoints(&servers);
            self.ensure_same(ENDPOINTS, object, &["subsets"]).await?;
        }
        if self.serves("discovery.k8s.io", "endpointslices") {
            self.ensure_slices(&servers).await?;
        }
        Ok(wait)
    }

    async fn ensure_slices(&self, servers: &BTreeSet<SocketAddr>) -> Result<(), Status> {
        let slices = endpoints::slices(servers);
        let mut names = BTreeSet::new();
        for slice in slices {
            let name = name_of(&slice).to_owned();
            let path = format!("{SLICES}/{name}");
            let live = self.find(&path).await?;
            // The type of the addresses cannot be changed.
            if live.is_some_and(|live| live.get("addressType") != slice.get("addressType")) {
                self.client.remove(&path, &Value::object()).await?;
            }
            self.ensure_same(SLICES, slice, &["endpoints", "ports"])
                .await?;
            names.insert(name);
        }
        let stored = self.client.server().store().resource(STORED_SLICES);
        let snapshot = stored.snapshot();
        let extra = snapshot
            .range("default/kubernetes-", None)
            .filter(|entry| entry.facets().label(endpoints::EXTRA).is_some())
            .filter(|entry| !names.contains(entry.name()));
        for entry in extra {
            let path = format!("{SLICES}/{}", entry.name());
            self.client.remove(&path, &Value::object()).await?;
        }
        Ok(())
    }

    /// Creates the ServiceCIDR, or adds a second network to it.
    async fn ensure_networks(&self, wanted: &KubernetesService) -> Result<(), Status> {
        let networks: Value = wanted.networks.iter().map(String::as_str).collect();
        let path = format!("{NETWORKS}/kubernetes");
        let mut live = self.find(&path).await?;
        if live.is_none() {
            let object = value!({
                "apiVersion": "networking.k8s.io/v1",
                "kind": "ServiceCIDR",
                "metadata": {"name": "kubernetes", "finalizers": [(service_cidrs::FINALIZER)]},
                "spec": {"cidrs": (networks.clone())},
            });
            self.client.ensure(NETWORKS, &object).await?;
            live = self.find(&path).await?;
        }
        let Some(mut live) = live else {
            return Ok(());
        };
        let stored = live.at(&["spec", "cidrs"]).cloned().unwrap_or_default();
        if stored != networks {
            let before = stored.as_array().unwrap_or(&[]);
            if !(before.len() == 1 && networks.as_array().unwrap_or(&[]).starts_with(before)) {
                tracing::warn!(%stored, wanted = %networks, "the ServiceCIDR kubernetes has other networks than the settings");
                return Ok(());
            }
            live.map_mut().object_mut("spec").insert("cidrs", networks);
            self.client.update(&path, live.value()).await?;
        }
        let conditions = live.at(&["status", "conditions"]).and_then(Value::as_array);
        if conditions.is_some_and(|conditions| !conditions.is_empty()) {
            return Ok(());
        }
        let ready = value!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "ServiceCIDR",
            "metadata": {"name": "kubernetes"},
            "status": {"conditions": [{
                "type": "Ready",
                "status": "True",
                "message": "Kubernetes default Service CIDR is ready",
                "lastTransitionTime": (now()),
            }]},
        });
        let manager = "kubernetes-service-cidr-controller";
        let path = format!("{path}/status");
        self.client.apply(&path, manager, &ready).await
    }

    async fn ensure_service(&self, wanted: &KubernetesService) -> Result<(), Status> {
        let port = Value::Int(wanted.port.into());
        let path = format!("{SERVICE}/kubernetes");
        let Some(live) = self.find(&path).await? else {
            let object = value!({
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {
                    "name": "kubernetes",
                    "namespace": "default",
                    "labels": {"component": "apiserver", "provider": "kubernetes"},
                },
                "spec": {
                    "clusterIP": (wanted.address.to_string()),
                    "ipFamilyPolicy": "SingleStack",
                    "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}],
                    "sessionAffinity": "None",
                    "type": "ClusterIP",
                },
            });
            return self.client.ensure(SERVICE, &object).await;
        };
        let ports = live.at(&["spec", "ports"]).and_then(Value::as_array);
        let https = ports.and_then(|ports| {
            let is_https = |port: &&Value| port.get("port").and_then(Value::as_i64) == Some(443);
            ports.iter().find(is_https)
        });
        if https.is_none_or(|https| https.get("targetPort") == Some(&port)) {
            return Ok(());
        }
        let patch = value!({"spec": {"ports": [{"port": 443, "targetPort": port}]}});
        let media = "application/strategic-merge-patch+json";
        let patched = self
            .client
            .request(Method::PATCH, &path, media, Some(&patch));
        patched.await.map(|_| ())
    }

    /// Creates an object, or sets some members of the object that exists.
    async fn ensure_same(
        &self,
        collection: &str,
        object: Value,
        members: &[&str],
    ) -> Result<(), Status> {
        let path = format!("{collection}/{}", name_of(&object));
        let Some(live) = self.find(&path).await? else {
            return self.client.ensure(collection, &object).await;
        };
        let mut patch = Value::object();
        for member in members {
            let wanted = object.get(member).cloned().unwrap_or_default();
            if live.get(member) != Some(&wanted) {
                patch.make_object().insert(*member, wanted);
            }
        }
        if patch == Value::object() {
            return Ok(());
        }
        self.client.merge(&path, &patch).await.map(|_| ())
    }

    async fn find(&self, path: &str) -> Result<Option<Object>, Status> {
        match self.client.get(path).await {
            Ok(object) => Ok(Some(object)),
            Err(status) if status.code == 404 => Ok(None),
            Err(status) => Err(status),
        }
    }

    fn serves(&self, group: &str, plural: &str) -> bool {
        let table = self.client.server().catalog().table();
        table.find(group, plural).is_some()
    }
}

fn name_of(object: &Value) -> &str {
    let name = object.at(&["metadata", "name"]);
    name.and_then(Value::as_str).unwrap_or_default()
}

/// Notices when the service is deleted, and when servers come and go.
pub(crate) struct ServiceListener {
    queue: Arc<Queue<()>>,
}

impl Listener for ServiceListener {
    fn reset(&mut self, store: &Store) {
        if store.is_shared() || store.resource(SERVICES).get(KEY).is_none() {
            self.queue.add(());
        }
    }

    fn on_event(&mut self, resource: &Arc<Resource>, event: &Event) {
        let is_deleted =
            resource.name() == SERVICES && event.kind == EventKind::Deleted && event.key() == KEY;
        if is_deleted || servers::concerns(resource, event) {
            self.queue.add(());
        }
    }
}

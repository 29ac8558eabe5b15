//! How clients inside find the server: the service `default/kubernetes`, its endpoints, and the networks of services.
//!
//! Which addresses there are is decided by whoever serves services; here they are only told.

use crate::Client;
use crate::addresses;
use crate::conditions::now;
use crate::feed::Listener;
use crate::queue::{Queue, Verdict};
use bareboat_api::{Object, Status, Value, value};
use bareboat_storage::{Event, EventKind, Resource, Store};
use http::Method;
use parking_lot::Mutex;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

const SERVICES: &str = "core/services";
const KEY: &str = "default/kubernetes";
const NETWORKS: &str = "/apis/networking.k8s.io/v1/servicecidrs";
const SERVICE: &str = "/api/v1/namespaces/default/services";
const ENDPOINTS: &str = "/api/v1/namespaces/default/endpoints";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

/// How clients inside find the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubernetesService {
    /// The networks of services, the preferred one first.
    pub networks: Vec<String>,
    /// The address of the service.
    pub address: IpAddr,
    /// The port the server listens on; 0 as long as it is not known.
    pub port: u16,
    /// Where others reach the server; one that only its own machine reaches has no endpoints.
    pub endpoint: Option<IpAddr>,
}

/// Keeps the service as it should be.
pub(crate) struct Keeper {
    client: Client,
    wanted: Mutex<KubernetesService>,
    pub(crate) queue: Arc<Queue<()>>,
}

impl Keeper {
    pub(crate) fn new(client: &Client, wanted: KubernetesService) -> Keeper {
        Keeper {
            client: client.named("kube-apiserver"),
            wanted: Mutex::new(wanted),
            queue: Queue::new(),
        }
    }

    /// Tells where the server listens.
    pub(crate) fn listens(&self, address: SocketAddr) {
        let ip = address.ip();
        let mut wanted = self.wanted.lock();
        wanted.port = address.port();
        wanted.endpoint = (!ip.is_loopback() && !ip.is_unspecified()).then_some(ip);
        self.queue.add(());
    }

    pub(crate) async fn look(&self) -> Verdict {
        let wanted = self.wanted.lock().clone();
        if wanted.port == 0 {
            // Any free port will do, and which one it is will be told.
            return Verdict::Done;
        }
        match self.ensure(&wanted).await {
            Ok(()) => Verdict::Done,
            Err(status) => {
                tracing::warn!(%status, "the service default/kubernetes could not be kept");
                Verdict::Retry
            }
        }
    }

    async fn ensure(&self, wanted: &KubernetesService) -> Result<(), Status> {
        if self.serves("networking.k8s.io", "servicecidrs") {
            self.ensure_networks(wanted).await?;
        }
        if self.serves("", "services") {
            self.ensure_service(wanted).await?;
        }
        let Some(endpoint) = wanted.endpoint else {
            return Ok(());
        };
        if self.serves("", "endpoints") {
            let subsets = value!([{
                "addresses": [{"ip": (endpoint.to_string())}],
                "ports": [{"name": "https", "port": (i64::from(wanted.port)), "protocol": "TCP"}],
            }]);
            let object = value!({
                "apiVersion": "v1",
                "kind": "Endpoints",
                "metadata": {
                    "name": "kubernetes",
                    "namespace": "default",
                    "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"},
                },
                "subsets": subsets,
            });
            self.ensure_same(ENDPOINTS, object, &["subsets"]).await?;
        }
        if self.serves("discovery.k8s.io", "endpointslices") {
            let family = if endpoint.is_ipv4() { "IPv4" } else { "IPv6" };
            let object = value!({
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": {
                    "name": "kubernetes",
                    "namespace": "default",
                    "labels": {"kubernetes.io/service-name": "kubernetes"},
                },
                "addressType": family,
                "endpoints": [{"addresses": [(endpoint.to_string())], "conditions": {"ready": true}}],
                "ports": [{"name": "https", "port": (i64::from(wanted.port)), "protocol": "TCP"}],
            });
            self.ensure_same(SLICES, object, &["endpoints", "ports"])
                .await?;
        }
        Ok(())
    }

    /// The object that tells the networks of services.
    async fn ensure_networks(&self, wanted: &KubernetesService) -> Result<(), Status> {
        let networks: Value = wanted.networks.iter().map(String::as_str).collect();
        let path = format!("{NETWORKS}/kubernetes");
        let mut live = self.find(&path).await?;
        if live.is_none() {
            let object = value!({
                "apiVersion": "networking.k8s.io/v1",
                "kind": "ServiceCIDR",
                "metadata": {"name": "kubernetes", "finalizers": [(addresses::FINALIZER)]},
                "spec": {"cidrs": (networks.clone())},
            });
            create(&self.client, NETWORKS, &object).await?;
            live = self.find(&path).await?;
        }
        let Some(mut live) = live else {
            return Ok(());
        };
        let told = live.at(&["spec", "cidrs"]).cloned().unwrap_or_default();
        if told != networks {
            let before = told.as_array().unwrap_or(&[]);
            if !(before.len() == 1 && networks.as_array().unwrap_or(&[]).starts_with(before)) {
                tracing::warn!(%told, wanted = %networks, "the ServiceCIDR kubernetes tells of other networks than services get");
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
        let path =
            format!("{path}/status?fieldManager=kubernetes-service-cidr-controller&force=true");
        let media = "application/apply-patch+yaml";
        let applied = self
            .client
            .request(Method::PATCH, &path, media, Some(&ready));
        applied.await.map(|_| ())
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
            return create(&self.client, SERVICE, &object).await;
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

    /// Creates an object, or sets some members of the one that is there.
    async fn ensure_same(
        &self,
        collection: &str,
        object: Value,
        members: &[&str],
    ) -> Result<(), Status> {
        let path = format!("{collection}/kubernetes");
        let Some(live) = self.find(&path).await? else {
            return create(&self.client, collection, &object).await;
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

async fn create(client: &Client, path: &str, object: &Value) -> Result<(), Status> {
    match client.create(path, object).await {
        Err(status) if status.reason != "AlreadyExists" => Err(status),
        _ => Ok(()),
    }
}

/// Notes when the service was deleted.
pub(crate) struct Ear(pub(crate) Arc<Queue<()>>);

impl Listener for Ear {
    fn reset(&mut self, store: &Store) {
        if store.resource(SERVICES).get(KEY).is_none() {
            self.0.add(());
        }
    }

    fn heard(&mut self, resource: &Arc<Resource>, event: &Event) {
        if resource.name() == SERVICES && event.kind == EventKind::Deleted && event.key() == KEY {
            self.0.add(());
        }
    }
}

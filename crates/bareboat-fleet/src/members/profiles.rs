//! ClusterProfiles: one per member, in the namespace of the fleet, for tools that find clusters by this inventory.

use super::conditions::Condition;
use super::state::MemberState;
use super::status::{time, with_condition};
use crate::members::controller::read;
use bareboat_api::{Object, Status, Value, value};
use bareboat_controllers::Client;
use parking_lot::RwLock;
use std::sync::Arc;

const STORE: &str = "multicluster.x-k8s.io/clusterprofiles";
/// The name of this program in profiles.
const MANAGER: &str = "bareboat";

/// Where clients reach this server.
#[derive(Clone, Debug, Default)]
pub struct HubAddress {
    /// The URL.
    pub url: String,
    /// The CAs of its certificate, base64 of PEM.
    pub authorities: String,
}

/// Publishes profiles.
pub(crate) struct Profiles {
    pub(crate) namespace: String,
    pub(crate) address: Arc<RwLock<Option<HubAddress>>>,
    pub(crate) clock: crate::sync::writer::Clock,
}

impl Profiles {
    fn path(&self, name: &str) -> String {
        let namespace = &self.namespace;
        format!("/apis/multicluster.x-k8s.io/v1alpha1/namespaces/{namespace}/clusterprofiles{name}")
    }

    /// Writes the profile of a member, if it differs.
    pub(crate) async fn publish(&self, client: &Client, state: &MemberState) -> Result<(), Status> {
        let store = client.server().store().resource(STORE);
        let key = format!("{}/{}", self.namespace, state.name);
        let found = store.get(&key).and_then(|entry| read(&entry));
        let object = match found {
            Some(object) => object,
            None => {
                let profile = value!({
                    "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile",
                    "metadata": {
                        "name": (&*state.name), "namespace": (self.namespace.as_str()),
                        "labels": {"x-k8s.io/cluster-manager": MANAGER},
                    },
                    "spec": {"displayName": (&*state.name), "clusterManager": {"name": MANAGER}},
                });
                let created = client.create(&self.path(""), &profile).await?;
                Object::try_from(created)
                    .map_err(|_| Status::internal("the profile is no object"))?
            }
        };
        let mut changed = object.clone();
        self.describe(&mut changed, state);
        if changed.get("status") == object.get("status") {
            return Ok(());
        }
        let path = format!("{}/status", self.path(&format!("/{}", state.name)));
        client.update(&path, changed.value()).await.map(drop)
    }

    fn describe(&self, object: &mut Object, state: &MemberState) {
        let shown = state.shown();
        let ready = shown.conditions.ready();
        let condition = Condition {
            status: ready.status,
            reason: match ready.holds() {
                true => "Healthy",
                false => "NotReady",
            },
            message: ready.message,
        };
        with_condition(
            object,
            "ControlPlaneHealthy",
            &condition,
            &time((self.clock)()),
        );
        let status = object.map_mut().object_mut("status");
        if !shown.version.is_empty() {
            status.insert("version", value!({"kubernetes": (shown.version.as_str())}));
        }
        if let Some(hub) = &*self.address.read() {
            let url = format!(
                "{}/apis/clusterpedia.io/v1beta1/resources/clusters/{}",
                hub.url, state.name
            );
            let mut cluster = value!({"server": url});
            if !hub.authorities.is_empty() {
                let authorities = Value::string(&hub.authorities);
                cluster
                    .make_object()
                    .insert("certificate-authority-data", authorities);
            }
            status.insert(
                "accessProviders",
                value!([{"name": MANAGER, "cluster": cluster}]),
            );
        }
    }

    /// Removes the profile of a member that left, if it is one of this program.
    pub(crate) async fn remove(&self, client: &Client, name: &str) -> Result<(), Status> {
        let store = client.server().store().resource(STORE);
        let found = store.get(&format!("{}/{name}", self.namespace));
        let found = found.and_then(|entry| read(&entry));
        let manager = found.as_ref().and_then(|profile| {
            let name = profile.at(&["spec", "clusterManager", "name"])?;
            name.as_str()
        });
        if manager != Some(MANAGER) {
            return Ok(());
        }
        match client
            .delete(&self.path(&format!("/{name}")), &value!({}))
            .await
        {
            Err(status) if status.code != 404 => Err(status),
            _ => Ok(()),
        }
    }
}

//! What must be there before the first client asks.

use crate::{Client, FrontProxy};
use bareboat_api::{Status, Value, value};

/// The namespaces every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// Where servers behind this one read how to recognize it.
const EXTENSION: &str = "extension-apiserver-authentication";

/// Creates what is missing.
pub(crate) async fn run(client: &Client, front_proxy: Option<&FrontProxy>) {
    let client = client.named("kube-apiserver");
    let store = client.server().store().resource("core/namespaces");
    for name in NAMESPACES {
        if store.get(name).is_some() {
            continue;
        }
        let namespace =
            value!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        match client.create("/api/v1/namespaces", &namespace).await {
            Ok(_) => {}
            Err(status) if status.reason == "AlreadyExists" => {}
            Err(status) => tracing::error!(name, %status, "a namespace could not be created"),
        }
    }
    if let Some(front_proxy) = front_proxy
        && let Err(status) = tell_extensions(&client, front_proxy).await
    {
        tracing::error!(%status, "servers behind this one cannot be told how to recognize it");
    }
}

/// Writes down how servers behind this one recognize it; certificates may have changed since the last start.
async fn tell_extensions(client: &Client, front_proxy: &FrontProxy) -> Result<(), Status> {
    let names: Value = front_proxy.names.iter().map(String::as_str).collect();
    let list = |value: Value| value.to_string();
    let data = value!({
        "client-ca-file": (front_proxy.client_ca.as_str()),
        "requestheader-client-ca-file": (front_proxy.ca.as_str()),
        "requestheader-allowed-names": (list(names)),
        "requestheader-username-headers": (list(value!(["X-Remote-User"]))),
        "requestheader-uid-headers": (list(value!(["X-Remote-Uid"]))),
        "requestheader-group-headers": (list(value!(["X-Remote-Group"]))),
        "requestheader-extra-headers-prefix": (list(value!(["X-Remote-Extra-"]))),
    });
    let place = "/api/v1/namespaces/kube-system/configmaps";
    let config = value!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": EXTENSION, "namespace": "kube-system"},
        "data": (data.clone()),
    });
    match client.create(place, &config).await {
        Err(status) if status.reason == "AlreadyExists" => {
            let patch = value!({"data": data});
            let path = format!("{place}/{EXTENSION}");
            client.merge(&path, &patch).await.map(|_| ())
        }
        other => other.map(|_| ()),
    }
}

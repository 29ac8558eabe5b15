//! What must be there before the first client asks.

use crate::Client;
use bareboat_api::value;

/// The namespaces every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// Creates what is missing.
pub(crate) async fn run(client: &Client) {
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
}

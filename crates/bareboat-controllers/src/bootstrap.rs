//! Creates the namespaces that every server has, before the first client connects.
//!
//! This runs as the server itself: roles of controllers live in one of these namespaces and come later.

use crate::Client;
use crate::startup::Startup;
use bareboat_api::kind::BoxFuture;
use bareboat_api::value;

const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// Creates the namespaces that do not exist yet.
pub(crate) fn run(startup: &mut Startup) -> BoxFuture<'_, ()> {
    Box::pin(create_namespaces(
        Client::new(startup.server.clone()).named("kube-apiserver"),
    ))
}

async fn create_namespaces(client: Client) {
    let store = client.server().store().resource("core/namespaces");
    for name in NAMESPACES {
        if store.get(name).is_some() {
            continue;
        }
        let namespace =
            value!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        if let Err(status) = client.ensure("/api/v1/namespaces", &namespace).await {
            tracing::error!(name, %status, "cannot create a namespace");
        }
    }
}

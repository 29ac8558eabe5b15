//! Credentials of members in Secrets.

use super::ghost::Ghost;
use super::hub::Hub;
use bareboat_api::{Value, value};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::sync::atomic::Ordering;

const SECRETS: &str = "/api/v1/namespaces/clusterpedia-system/secrets";

/// A kubeconfig with a token, and something else that its user has.
fn kubeconfig(more: &str) -> String {
    format!(
        "current-context: a\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
         clusters: [{{name: a, cluster: {{server: 'https://g'}}}}]\nusers: [{{name: a, user: {{token: hidden{more}}}}}]\n"
    )
}

fn secret(kubeconfig: &str) -> Value {
    value!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "g"},
        "data": {"config": (BASE64_STANDARD.encode(kubeconfig))},
    })
}

/// Changes the kubeconfig in the Secret.
async fn write(hub: &Hub, kubeconfig: &str) {
    let (path, object) = (format!("{SECRETS}/g"), secret(kubeconfig));
    let changed = hub.client.merge(&path, &object).await;
    changed.expect("a Secret can be changed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kubeconfig_in_a_secret_runs_nothing() {
    let hub = Hub::start().await;
    let ghost = Ghost::new(10);
    hub.know("g", &ghost);
    let dir = tempfile::tempdir().expect("a directory can be made");
    let ran = dir.path().join("ran");
    let program = format!(
        ", exec: {{apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, args: ['-c', 'touch {}']}}",
        ran.display()
    );
    let object = secret(&kubeconfig(&program));
    hub.until("there is a namespace for Secrets", || async {
        hub.client.create(SECRETS, &object).await.is_ok()
    })
    .await;
    let from = value!({"kubeconfig": {"name": "g", "key": "config"}});
    let cluster = value!({
        "apiVersion": "cluster.clusterpedia.io/v1alpha2", "kind": "PediaCluster", "metadata": {"name": "g"},
        "spec": {"authenticationFrom": from, "syncResources": [{"group": "", "resources": ["pods"]}]},
    });
    let path = "/apis/cluster.clusterpedia.io/v1alpha2/pediaclusters";
    let created = hub.client.create(path, &cluster).await;
    created.expect("a PediaCluster can be created");
    let file = dir.path().display();
    let bad = [
        ("exec", program),
        ("auth-provider", ", auth-provider: {name: gcp}".to_owned()),
        ("tokenFile", format!(", tokenFile: {file}/token")),
        (
            "client-certificate",
            format!(", client-certificate: {file}/cert"),
        ),
        ("client-key", format!(", client-key: {file}/key")),
    ];
    for (named, more) in bad {
        write(&hub, &kubeconfig(&more)).await;
        hub.until("the condition names the field", || async {
            let cluster = hub.cluster("g").await.unwrap_or_default();
            let text = String::from_utf8(cluster.to_json()).unwrap_or_default();
            assert!(!text.contains("hidden"), "{text}");
            let invalid = ("False".to_owned(), "InvalidConfig".to_owned());
            hub.condition("g", "Validated").await == invalid
                && text.contains(&format!("may not have {named}:"))
        })
        .await;
    }
    assert_eq!(
        hub.connections.load(Ordering::Relaxed),
        0,
        "nothing was called"
    );
    assert!(!ran.exists(), "the program ran");
    write(&hub, &kubeconfig("")).await;
    hub.ready("g").await;
    hub.has_rows("g", "pods", 10).await;
    hub.fleet.stop().await;
}

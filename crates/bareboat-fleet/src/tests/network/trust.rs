//! Certificates of members, and warnings about credentials in PediaClusters.

use super::{CLUSTERS, Network, TOKEN, encoded, member, spec, trusting};
use bareboat_api::{Value, value};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_without_a_known_ca_is_trusted_only_with_the_annotation() {
    let network = Network::start().await;
    let member = member().await;
    network.join("c1", spec(&member), value!({})).await;
    network
        .until("the CAs of the system do not know it", || async {
            network.reason("c1", "ClusterHealthy").await == "NotReachable"
        })
        .await;
    let insecure = "fleet.bareboat.dev/insecure";
    let warnings = network.annotate("c1", insecure, "true").await;
    assert!(
        warnings.len() == 1 && warnings[0].contains("is not verified"),
        "{warnings:?}"
    );
    network.ready("c1").await;
    // A change of something else does not repeat it.
    let warnings = network.annotate("c1", "other", "x").await;
    assert_eq!(warnings, Vec::<String>::new());
    network.annotate("c1", insecure, "false").await;
    network
        .until("it is verified again", || async {
            network.reason("c1", "ClusterHealthy").await == "NotReachable"
        })
        .await;
    network.fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_in_a_pedia_cluster_are_warned_about_and_those_in_secrets_are_not() {
    let network = Network::start().await;
    let member = member().await;
    let warned = |warnings: &[String], field: &str| {
        let mut found = warnings.iter();
        found.any(|one| one.contains(&format!("spec.{field}: everyone who may read")))
    };
    let token = network.join("token", trusting(&member), value!({})).await;
    assert!(token.len() == 1 && warned(&token, "tokenData"), "{token:?}");
    let (chain, key) = member.admin_certificate();
    let with_key = value!({
        "apiserver": (member.url()), "caData": (encoded(member.ca())), "certData": (encoded(chain)),
        "keyData": (encoded(key)), "syncResources": [],
    });
    let key = network.join("key", with_key, value!({})).await;
    assert!(key.len() == 1 && warned(&key, "keyData"), "{key:?}");
    let file = member.kubeconfig();
    let with_file = value!({"kubeconfig": (encoded(&file)), "syncResources": []});
    let inline = network.join("inline", with_file, value!({})).await;
    assert!(
        inline.len() == 1 && warned(&inline, "kubeconfig"),
        "{inline:?}"
    );
    let secret = value!({"metadata": {"name": "s"}, "data": {
        "config": (encoded(&file)), "token": (encoded(TOKEN)), "ca": (encoded(member.ca())),
    }});
    let secrets = "/api/v1/namespaces/clusterpedia-system/secrets";
    network
        .until("there is a namespace for Secrets", || async {
            network.send("POST", secrets, &secret).await.code == 201
        })
        .await;
    let from = |part: &str, key: &str| {
        let mut from = Value::object();
        from.make_object()
            .insert(part, value!({"name": "s", "key": key}));
        from
    };
    let config =
        value!({"authenticationFrom": (from("kubeconfig", "config")), "syncResources": []});
    let referred = network.join("referred", config, value!({})).await;
    assert_eq!(referred, Vec::<String>::new());
    for name in ["token", "key", "inline", "referred"] {
        network.ready(name).await;
    }
    // The status says nothing of them.
    for name in ["token", "key", "inline", "referred"] {
        let cluster = network.get(&format!("{CLUSTERS}/{name}")).await.body;
        let status = cluster.get("status").cloned().unwrap_or_default();
        let text = String::from_utf8(status.to_json()).unwrap_or_default();
        assert!(
            !text.contains(TOKEN) && !text.contains("PRIVATE KEY"),
            "{text}"
        );
    }
    network.fleet.stop().await;
}

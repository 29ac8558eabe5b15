//! Settings of the sync in the annotation, seen in the views.

use super::{Network, P, admin, encoded, member, send_to, trusting};
use bareboat_api::{Value, value};
use bareboat_testing::TestServer;

const SYNC: &str = "fleet.bareboat.dev/sync";

async fn create(member: &TestServer, plural: &str, object: Value) {
    let path = format!("/api/v1/namespaces/default/{plural}");
    let created = send_to(member, admin(), "POST", &path, &object, &[]).await;
    created.expect(201);
}

fn config(name: &str, app: &str) -> Value {
    value!({"metadata": {"name": name, "labels": {"app": app}}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_label_selector_limits_the_objects() {
    let network = Network::start().await;
    let member = member().await;
    create(&member, "configmaps", config("a", "web")).await;
    create(&member, "configmaps", config("b", "db")).await;
    let annotations = value!({SYNC: "{labelSelector: app=web}"});
    network.join("c1", trusting(&member), annotations).await;
    network.in_sync("c1").await;
    let path = format!("{P}/clusters/c1/api/v1/namespaces/default/configmaps");
    let shown = async |expected: &[&str]| {
        let what = format!("{expected:?} are shown");
        let holds = || async { network.get(&path).await.names() == expected };
        network.until(&what, holds).await;
    };
    assert_eq!(network.get(&path).await.names(), ["a"]);
    // Objects come and go with their labels.
    create(&member, "configmaps", config("c", "web")).await;
    create(&member, "configmaps", config("d", "db")).await;
    shown(&["a", "c"]).await;
    let relabel = async |name: &str, app: &str| {
        let path = format!("/api/v1/namespaces/default/configmaps/{name}");
        let patch = value!({"metadata": {"labels": {"app": app}}});
        let changed = send_to(&member, admin(), "PATCH", &path, &patch, &[]).await;
        changed.expect(200);
    };
    relabel("a", "db").await;
    relabel("b", "web").await;
    shown(&["b", "c"]).await;
    // Another selector, and none.
    network
        .annotate("c1", SYNC, "{labelSelector: {matchLabels: {app: db}}}")
        .await;
    shown(&["a", "d"]).await;
    network
        .change("c1", value!({"metadata": {"annotations": {SYNC: null}}}))
        .await;
    shown(&["a", "b", "c", "d"]).await;
    network.fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_of_secrets_are_shown_only_if_the_annotation_says_so() {
    let network = Network::start().await;
    let member = member().await;
    let value = encoded("hunter2");
    let secret = value!({"metadata": {"name": "s"}, "data": {"password": (value.as_str())}});
    create(&member, "secrets", secret).await;
    let full = value!({SYNC: "{secrets: full}"});
    network.join("keys", trusting(&member), value!({})).await;
    network.join("full", trusting(&member), full.clone()).await;
    // A wildcard does not name Secrets.
    let mut spec = trusting(&member);
    let all = value!([{"group": "", "resources": ["*"]}]);
    spec.make_object().insert("syncResources", all);
    network.join("wildcard", spec, full).await;
    for name in ["keys", "full", "wildcard"] {
        network.in_sync(name).await;
    }
    let shown = async |name: &str| {
        let path = format!("{P}/clusters/{name}/api/v1/namespaces/default/secrets/s");
        let secret = network.get(&path).await.expect(200).body;
        let password = secret.at(&["data", "password"]).and_then(Value::as_str);
        password.unwrap_or("").to_owned()
    };
    let is_digest =
        |text: &str| text.starts_with("sha256:") || text.starts_with(&encoded("sha256:")[..8]);
    assert_eq!(shown("full").await, value);
    for name in ["keys", "wildcard"] {
        let text = shown(name).await;
        assert!(is_digest(&text), "{text}");
    }
    // The list of all members, and the shelf itself.
    let list = network
        .get(&format!("{P}/api/v1/namespaces/default/secrets"))
        .await;
    assert_eq!(list.text().matches(&value).count(), 1, "{}", list.text());
    // The annotation is followed both ways.
    network.annotate("keys", SYNC, "{secrets: full}").await;
    network
        .until("the value is shown", || async {
            shown("keys").await == value
        })
        .await;
    for text in ["{secrets: keys}", "{}"] {
        network.annotate("full", SYNC, text).await;
        network
            .until("the value is not shown", || async {
                is_digest(&shown("full").await)
            })
            .await;
    }
    let list = network
        .get(&format!("{P}/api/v1/namespaces/default/secrets"))
        .await;
    assert_eq!(list.text().matches(&value).count(), 1, "{}", list.text());
    network.fleet.stop().await;
}

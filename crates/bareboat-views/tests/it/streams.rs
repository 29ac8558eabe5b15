//! Streams over sockets end when the user, or the credentials, lose their rights.

use crate::passing;
use crate::rig::{P, Rig, pod};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use kube::client::Body;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use std::time::Duration;

/// Within this time a stream ends. It is less than the time after which rights are looked at in any case.
const SOON: Duration = Duration::from_secs(8);

/// A client with a token.
async fn client(rig: &Rig, token: &str) -> kube::Client {
    let mut config = Kubeconfig::from_yaml(&rig.server.kubeconfig()).expect("it is well formed");
    config.auth_infos[0].auth_info = Some(AuthInfo {
        token: Some(token.to_owned().into()),
        ..AuthInfo::default()
    });
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(config, &options).await;
    kube::Client::try_from(config.expect("it can be used")).expect("a client can be made")
}

/// Begins a watch of pods that are visible.
async fn watch(client: &kube::Client, headers: &[(&str, &str)]) -> Events {
    let mut request =
        http::Request::builder().uri(format!("{P}/api/v1/pods?visible=true&watch=true"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::empty()).expect("it is well formed");
    let response = client.send(request).await.expect("it is answered");
    assert_eq!(response.status(), 200);
    Events {
        body: response.into_body(),
        left: Vec::new(),
    }
}

struct Events {
    body: Body,
    left: Vec<u8>,
}

impl Events {
    async fn next(&mut self) -> Option<serde_json::Value> {
        loop {
            if let Some(at) = self.left.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.left.drain(..=at).collect();
                return Some(serde_json::from_slice(&line).expect("an event is JSON"));
            }
            let frame = self.body.frame().await?.ok()?;
            let data: Bytes = frame.into_data().unwrap_or_default();
            self.left.extend_from_slice(&data);
        }
    }
}

/// Makes a role and its binding, and returns the path of the binding.
async fn bind(rig: &Rig, name: &str, user: &str, rules: serde_json::Value) -> String {
    let root = "/apis/rbac.authorization.k8s.io/v1";
    let role = serde_json::json!({"metadata": {"name": name}, "rules": rules});
    rig.send(
        "POST",
        &format!("{root}/clusterroles"),
        &role.to_string(),
        &[],
    )
    .await
    .expect(201);
    let binding = serde_json::json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    let bindings = format!("{root}/clusterrolebindings");
    rig.send("POST", &bindings, &binding.to_string(), &[])
        .await
        .expect(201);
    format!("{bindings}/{name}")
}

async fn filled() -> Rig {
    let rig = Rig::listening().await;
    rig.put("c1", pod("a", "x", "Running"));
    let members = serde_json::json!([{"apiGroups": ["clusterpedia.io"], "resources": ["resources"], "verbs": ["get"]}]);
    bind(&rig, "members", "ann", members).await;
    rig
}

fn pods() -> serde_json::Value {
    serde_json::json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_what_is_visible_ends_when_rights_change() {
    let rig = filled().await;
    let binding = bind(&rig, "pods", "ann", pods()).await;
    let client = client(&rig, "ann").await;
    let mut events = watch(&client, &[]).await;
    let event = events.next().await.expect("an event");
    assert_eq!(event["type"], "ADDED");
    // Other rights make no difference.
    bind(&rig, "others", "bob", pods()).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    rig.put("c1", pod("a", "z", "Running"));
    assert_eq!(events.next().await.expect("an event")["type"], "ADDED");
    rig.send("DELETE", &binding, "", &[]).await.expect(200);
    let ended = tokio::time::timeout(SOON, async {
        let event = events.next().await.expect("it says why");
        assert_eq!(event["object"]["code"], 410, "{event}");
        events.next().await
    });
    assert_eq!(ended.await.expect("it ends soon"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_what_is_visible_ends_with_its_credentials() {
    let rig = filled().await;
    bind(&rig, "pods", "ann", pods()).await;
    let rules =
        serde_json::json!([{"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"]}]);
    let binding = bind(&rig, "actors", "bob", rules).await;
    let client = client(&rig, "bob").await;
    let mut events = watch(&client, &[("impersonate-user", "ann")]).await;
    assert_eq!(events.next().await.expect("an event")["type"], "ADDED");
    rig.send("DELETE", &binding, "", &[]).await.expect(200);
    let ended = tokio::time::timeout(SOON, events.next()).await;
    assert_eq!(ended.expect("it ends soon"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_what_is_visible_ends_when_its_token_does() {
    let rig = filled().await;
    bind(&rig, "pods", "ann", pods()).await;
    let short = client(&rig, &passing::token("ann", Duration::from_secs(5))).await;
    let long = client(&rig, &passing::token("ann", Duration::from_secs(3600))).await;
    let (mut ends, mut stays) = (watch(&short, &[]).await, watch(&long, &[]).await);
    for events in [&mut ends, &mut stays] {
        assert_eq!(events.next().await.expect("an event")["type"], "ADDED");
    }
    let ended = tokio::time::timeout(SOON, ends.next()).await;
    assert_eq!(ended.expect("it ends soon"), None);
    // The other token is good.
    rig.put("c1", pod("a", "z", "Running"));
    let event = tokio::time::timeout(SOON, stays.next()).await;
    let event = event.expect("it comes soon").expect("an event");
    assert_eq!(event["object"]["metadata"]["name"], "z");
}

//! What users without all rights see.

use crate::rig::{P, Rig, pod, user};
use bareboat::api::value;

/// Gives a user rules in the whole hub, or in a namespace.
async fn grant(rig: &Rig, who: &str, namespace: &str, rules: serde_json::Value) {
    let (kind, root) = match namespace {
        "" => (
            "ClusterRole",
            "/apis/rbac.authorization.k8s.io/v1".to_owned(),
        ),
        _ => (
            "Role",
            format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"),
        ),
    };
    let plural = kind.to_lowercase() + "s";
    let name = format!(
        "{who}-{}",
        rig.shelf.visible() + rules.to_string().len() as i64
    );
    let role = serde_json::json!({"metadata": {"name": name}, "rules": rules});
    rig.send("POST", &format!("{root}/{plural}"), &role.to_string(), &[])
        .await
        .expect(201);
    let binding = serde_json::json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": who}],
    });
    let bindings = format!("{root}/{}bindings", kind.to_lowercase());
    rig.send("POST", &bindings, &binding.to_string(), &[])
        .await
        .expect(201);
}

fn read(resources: &[&str]) -> serde_json::Value {
    serde_json::json!([{"apiGroups": [""], "resources": resources, "verbs": ["get", "list", "watch"]}])
}

fn members(names: &[&str]) -> serde_json::Value {
    let mut rule = serde_json::json!({"apiGroups": ["clusterpedia.io"], "resources": ["resources"], "verbs": ["get"]});
    if !names.is_empty() {
        rule["resourceNames"] = serde_json::json!(names);
    }
    serde_json::json!([rule])
}

async fn filled() -> Rig {
    let rig = Rig::start().await;
    for namespace in ["a", "b"] {
        let body = format!(r#"{{"metadata": {{"name": "{namespace}"}}}}"#);
        rig.send("POST", "/api/v1/namespaces", &body, &[])
            .await
            .expect(201);
    }
    for cluster in ["c1", "c2"] {
        rig.put(cluster, pod("a", "x", "Running"));
        rig.put(cluster, pod("b", "y", "Running"));
    }
    rig
}

#[tokio::test]
async fn rights_on_namespaces_count() {
    let rig = filled().await;
    grant(&rig, "ann", "", members(&[])).await;
    grant(&rig, "ann", "a", read(&["pods"])).await;
    let pods = format!("{P}/api/v1/pods");
    let refused = rig.get_as("ann", &pods).await.expect(403);
    assert!(
        refused.message().contains("cannot list resource"),
        "{}",
        refused.message()
    );
    let only = ["c1/a/x", "c2/a/x"];
    assert_eq!(
        rig.get_as("ann", &format!("{P}/api/v1/namespaces/a/pods"))
            .await
            .names(),
        only
    );
    assert_eq!(
        rig.get_as("ann", &format!("{pods}?namespaces=a"))
            .await
            .names(),
        only
    );
    assert_eq!(
        rig.get_as("ann", &format!("{pods}?visible=true"))
            .await
            .names(),
        only
    );
    rig.get_as("ann", &format!("{pods}?namespaces=a,b"))
        .await
        .expect(403);
    rig.get_as("ann", &format!("{P}/api/v1/namespaces/b/pods"))
        .await
        .expect(403);
    let one = |namespace: &str, name: &str| {
        format!("{P}/clusters/c1/api/v1/namespaces/{namespace}/pods/{name}")
    };
    rig.get_as("ann", &one("a", "x")).await.expect(200);
    rig.get_as("ann", &one("b", "y")).await.expect(403);
    rig.get_as("ann", &format!("{P}/clusters/c1/api/v1/pods"))
        .await
        .expect(403);
    // A search cannot tell what is in namespaces that the user may not read.
    rig.get_as("ann", &format!("{pods}?summary=namespace"))
        .await
        .expect(403);
    let summary = rig
        .get_as("ann", &format!("{pods}?summary=namespace&visible=true"))
        .await;
    assert_eq!(
        summary.expect(200).json()["groups"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
}

#[tokio::test]
async fn rights_on_members_count() {
    let rig = filled().await;
    grant(&rig, "bob", "", members(&["c1"])).await;
    grant(&rig, "bob", "", read(&["pods"])).await;
    let pods = format!("{P}/api/v1/pods");
    let list = rig.get_as("bob", &pods).await;
    assert_eq!(list.names(), ["c1/a/x", "c1/b/y"]);
    assert!(
        list.warnings()[0].contains("2 clusters are left out"),
        "{:?}",
        list.warnings()
    );
    rig.get_as("bob", &format!("{pods}?clusters=c2"))
        .await
        .expect(403);
    rig.get_as("bob", &format!("{P}/clusters/c2/api/v1/pods"))
        .await
        .expect(403);
    rig.get_as(
        "bob",
        &format!("{P}/clusters/c2/api/v1/namespaces/a/pods/x"),
    )
    .await
    .expect(403);
    rig.get_as("nobody", &pods).await.expect(403);
    let mut events = rig
        .watch_as(user("bob"), &format!("{pods}?watch=true"), &[])
        .await;
    assert_eq!(events.take(2).await, ["ADDED c1/a/x", "ADDED c1/b/y"]);
    rig.put("c2", pod("a", "hidden", "Running"));
    rig.put("c1", pod("a", "shown", "Running"));
    assert_eq!(events.take(1).await, ["ADDED c1/a/shown"]);
}

#[tokio::test]
async fn secrets_show_their_keys() {
    let rig = filled().await;
    let mut open = crate::rig::member("c3");
    open.shows_secrets = true;
    rig.join(open);
    let secret = |value: &str| {
        value!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "a", "name": "s"},
            "data": {"password": value},
        })
    };
    rig.put("c1", secret("aHVudGVyMg=="));
    rig.put("c3", secret("aHVudGVyMg=="));
    let list = rig
        .get(&format!("{P}/api/v1/secrets"))
        .await
        .expect(200)
        .json();
    let shown = |index: usize| {
        list["items"][index]["data"]["password"]
            .as_str()
            .unwrap_or("")
            .to_owned()
    };
    assert!(shown(0).starts_with("sha256:"), "{}", shown(0));
    assert_eq!(shown(1), "aHVudGVyMg==");
    let one = rig
        .get(&format!("{P}/clusters/c1/api/v1/namespaces/a/secrets/s"))
        .await
        .expect(200);
    assert!(!String::from_utf8_lossy(&one.bytes).contains("aHVudGVyMg"));
    let mut events = rig.watch(&format!("{P}/api/v1/secrets?watch=true")).await;
    let event = events.next().await.expect("an event");
    assert!(!event.to_string().contains("aHVudGVyMg"));
    grant(&rig, "cid", "", members(&[])).await;
    grant(&rig, "cid", "", read(&["pods"])).await;
    rig.get_as("cid", &format!("{P}/api/v1/secrets"))
        .await
        .expect(403);
    let found = rig
        .get_as(
            "cid",
            "/apis/clusterpedia.io/v1beta1/collectionresources/any?groups=",
        )
        .await;
    found.expect(403);
}

#[tokio::test]
async fn collections_leave_out_types_that_the_user_may_not_list() {
    let rig = filled().await;
    grant(&rig, "dot", "", members(&[])).await;
    grant(&rig, "dot", "", read(&["pods"])).await;
    let rule = serde_json::json!([{"apiGroups": ["clusterpedia.io"], "resources": ["collectionresources"], "verbs": ["get", "list"]}]);
    grant(&rig, "dot", "", rule).await;
    rig.put(
        "c1",
        value!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "a", "name": "s"}}),
    );
    let found = rig
        .get_as(
            "dot",
            "/apis/clusterpedia.io/v1beta1/collectionresources/any?groups=",
        )
        .await;
    let found = found.expect(200);
    assert!(!String::from_utf8_lossy(&found.bytes).contains("Secret"));
    assert_eq!(found.json()["items"].as_array().map(Vec::len), Some(4));
    assert!(found.warnings()[0].contains("types are left out"));
}

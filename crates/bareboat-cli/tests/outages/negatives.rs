//! Answers about what is missing: what another server has just made is never reported as missing or forbidden, and what
//! it has taken away is never accepted.

use crate::database::Database;
use crate::fleet::Fleet;
use bareboat_rig::plan;
use kube::Client;
use serde_json::{Value, json};
use std::time::Duration;

/// Sends a request; returns the code of the answer, and the answer.
async fn send(client: &Client, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(body.map(Value::to_string).unwrap_or_default().into_bytes())
        .unwrap();
    match client.request::<Value>(request).await {
        Ok(answer) => (200, answer),
        Err(kube::Error::Api(status)) => (status.code, Value::Null),
        Err(error) => panic!("{method} {path}: {error}"),
    }
}

async fn make(client: &Client, path: &str, object: Value) -> Value {
    let (code, made) = send(client, "POST", path, Some(&object)).await;
    assert_eq!(code, 200, "{path} {object}");
    made
}

async fn remove(client: &Client, path: &str) {
    assert_eq!(send(client, "DELETE", path, None).await.0, 200, "{path}");
}

fn named(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

fn definition(group: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("boats.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": "boats", "kind": "Boat"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

/// Lets a service account read config maps.
fn binding(namespace: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": namespace}],
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_another_server_made_is_missing() {
    let Some(database) = Database::postgres() else {
        return;
    };
    let fleet = tokio::task::block_in_place(|| Fleet::start(&database, 2, &[]));
    let clients = fleet.clients().await;
    // The second server learns late what the first one does: without a look at the log, its answers would be wrong.
    let slow = &fleet.replicas[1];
    slow.proxy.set_delay(Duration::from_millis(20));
    let (here, there) = (&clients[0], &clients[1]);
    for n in 0..plan::count(5, 200) {
        let space = format!("space-{n}");
        let core = format!("/api/v1/namespaces/{space}");
        make(here, "/api/v1/namespaces", named(&space)).await;
        make(there, &format!("{core}/configmaps"), named("a")).await;

        let group = format!("g{n}.example.com");
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        make(here, definitions, definition(&group)).await;
        let boat =
            json!({"apiVersion": format!("{group}/v1"), "kind": "Boat", "metadata": {"name": "b"}});
        let boats = format!("/apis/{group}/v1/namespaces/{space}/boats");
        make(there, &boats, boat).await;

        let accounts = format!("{core}/serviceaccounts");
        make(here, &accounts, named("reader")).await;
        let token = make(
            here,
            &format!("{accounts}/reader/token"),
            json!({"spec": {}}),
        )
        .await;
        let token = token["status"]["token"].as_str().unwrap().to_owned();
        let reader = slow.home.client_with_token(&token).await;
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        let seen = make(&reader, reviews, review).await;
        let name = format!("system:serviceaccount:{space}:reader");
        assert_eq!(seen["status"]["userInfo"]["username"], name);

        let map = format!("{core}/configmaps/a");
        assert_eq!(send(&reader, "GET", &map, None).await.0, 403, "round {n}");
        let bindings =
            format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{space}/rolebindings");
        make(here, &bindings, binding(&space)).await;
        assert_eq!(send(&reader, "GET", &map, None).await.0, 200, "round {n}");
        remove(here, &format!("{bindings}/reader")).await;
        assert_eq!(send(&reader, "GET", &map, None).await.0, 403, "round {n}");

        remove(here, &format!("{accounts}/reader")).await;
        assert_eq!(send(&reader, "GET", &map, None).await.0, 401, "round {n}");
        // A namespace that another server is deleting takes no new objects.
        remove(here, &core).await;
        let refused = send(
            there,
            "POST",
            &format!("{core}/configmaps"),
            Some(&named("late")),
        )
        .await;
        assert!(matches!(refused.0, 403 | 404), "round {n}: {}", refused.0);
    }
}

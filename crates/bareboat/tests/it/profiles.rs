//! The kinds of both profiles; the smaller one is enough for a control plane.

use crate::support::{APPLY, MAPS, Requests as _, config_map, json};
use bareboat::prelude::Profile;
use bareboat_testing::TestServer;
use std::collections::BTreeSet;
use std::time::Duration;

async fn groups(server: &TestServer) -> BTreeSet<String> {
    let list = server.get("/apis").await.expect(200).json();
    let groups = list["groups"].as_array().expect("a list").iter();
    groups
        .map(|group| group["name"].as_str().unwrap_or("").to_owned())
        .collect()
}

async fn core(server: &TestServer) -> BTreeSet<String> {
    let list = server.get("/api/v1").await.expect(200).json();
    let resources = list["resources"].as_array().expect("a list").iter();
    resources
        .map(|resource| resource["name"].as_str().unwrap_or("").to_owned())
        .filter(|name| !name.contains('/'))
        .collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

async fn until_gone(server: &TestServer, path: &str) {
    for _ in 0..30_000 {
        if server.get(path).await.code == 404 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{path} is still there");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bare_profile_serves_only_what_a_control_plane_needs() {
    let server = TestServer::builder().profile(Profile::Bare).start().await;
    let bare = set(&[
        "configmaps",
        "events",
        "namespaces",
        "resourcequotas",
        "secrets",
        "serviceaccounts",
    ]);
    assert_eq!(core(&server).await, bare);
    let bare = set(&[
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "events.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "rbac.authorization.k8s.io",
    ]);
    assert_eq!(groups(&server).await, bare);
    server.get("/api/v1/pods").await.expect(404);
    server.get("/apis/apps/v1/deployments").await.expect(404);
    server.get("/openapi/v2").await.expect(200);

    let full = TestServer::builder().start().await;
    assert!(core(&full).await.contains("pods"));
    assert!(groups(&full).await.is_superset(&bare));
    assert!(groups(&full).await.contains("apps"));
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_apply_collection_quotas_and_namespaces_work_under_the_bare_profile() {
    let server = TestServer::builder().profile(Profile::Bare).start().await;
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "boats", "kind": "Boat"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "properties": {"sails": {"type": "integer"}}}},
            }}}],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    server.post(definitions, &definition).await.expect(201);
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "harbour"}});
    server
        .post("/api/v1/namespaces", &namespace)
        .await
        .expect(201);
    let boat = json!({
        "apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"name": "ada"}, "spec": {"sails": 2},
    });
    let path = "/apis/example.com/v1/namespaces/harbour/boats/ada?fieldManager=me";
    let applied = server.patch(path, APPLY, &boat).await.expect(201).json();
    assert_eq!(applied["spec"]["sails"], 2);
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"},
        "spec": {"hard": {"count/boats.example.com": "1"}},
    });
    server
        .post("/api/v1/namespaces/harbour/resourcequotas", &quota)
        .await
        .expect(201);
    let second =
        json!({"apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"name": "second"}});
    let boats = "/apis/example.com/v1/namespaces/harbour/boats";
    server.post(boats, &second).await.expect(403);

    let owner = server
        .post(MAPS, &config_map("owner"))
        .await
        .expect(201)
        .json();
    let mut dependent = config_map("dependent");
    dependent["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"],
    }]);
    server.post(MAPS, &dependent).await.expect(201);
    server.delete(&format!("{MAPS}/owner")).await.expect(200);
    until_gone(&server, &format!("{MAPS}/dependent")).await;

    server
        .delete("/api/v1/namespaces/harbour")
        .await
        .expect(200);
    until_gone(&server, "/api/v1/namespaces/harbour").await;
    server
        .get("/apis/example.com/v1/namespaces/harbour/boats/ada")
        .await
        .expect(404);
}

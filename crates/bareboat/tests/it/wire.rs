//! Details of the wire format, as in kube-apiserver.

use crate::socket::{As, Connection};
use crate::support::*;
use bareboat_testing::TestServer;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Returns a definition whose versions are all served; the first one is stored.
fn definition(group: &str, plural: &str, kind: &str, versions: &[&str]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .enumerate()
        .map(|(index, version)| {
            json!({"name": version, "served": true, "storage": index == 0,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"own": {"type": "string"}}}}})
        })
        .collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}"), "annotations": {
            "api-approved.kubernetes.io": "https://example.com/unapproved"}},
        "spec": {"group": group, "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": versions},
    })
}

fn is_plain_not_found(answer: &Answer) -> bool {
    answer.code == 404 && answer.text() == "404 page not found\n"
}

#[tokio::test]
async fn a_namespaced_custom_kind_has_no_writes_at_the_cluster_path() {
    let server = TestServer::start().await;
    let boats = definition("wire.example.com", "boats", "Boat", &["v1"]);
    server.post(DEFINITIONS, &boats).await.expect(201);
    let path = "/apis/wire.example.com/v1/boats";
    let boat =
        json!({"apiVersion": "wire.example.com/v1", "kind": "Boat", "metadata": {"name": "b"}});
    for answer in [server.post(path, &boat).await, server.delete(path).await] {
        assert!(is_plain_not_found(&answer), "{}", answer.text());
    }
    server.get(path).await.expect(200);
    // Built-in kinds know the path and reject the verb.
    let (code, reason, _) = server
        .post("/api/v1/configmaps", &config_map("a"))
        .await
        .status();
    assert_eq!((code, reason.as_str()), (405, "MethodNotAllowed"));
    server.delete("/api/v1/configmaps").await.expect(405);
}

#[tokio::test]
async fn versions_of_built_in_groups_are_reserved_for_built_in_kinds() {
    let server = TestServer::start().await;
    let foos = definition("networking.k8s.io", "foos", "Foo", &["v1", "v7"]);
    server.post(DEFINITIONS, &foos).await.expect(201);
    let of = |version: &str| format!("/apis/networking.k8s.io/{version}/namespaces/default/foos");
    let (code, reason, _) = server.get(&of("v1")).await.status();
    assert_eq!((code, reason.as_str()), (404, "NotFound"));
    let foo = |version: &str| json!({"apiVersion": format!("networking.k8s.io/{version}"), "kind": "Foo", "metadata": {"name": "f"}});
    server.post(&of("v1"), &foo("v1")).await.expect(404);
    server.post(&of("v7"), &foo("v7")).await.expect(201);
    server.get(&of("v7")).await.expect(200);
    let listed = server.get("/apis/networking.k8s.io/v1").await.json();
    let resources = listed["resources"].as_array().unwrap();
    assert!(resources.iter().all(|resource| resource["name"] != "foos"));
    let openapi = server.get("/openapi/v3/apis/networking.k8s.io/v1").await;
    assert!(!openapi.text().contains("/foos"));
    server
        .get("/openapi/v3/apis/networking.k8s.io/v7")
        .await
        .expect(200);
    let status = server
        .get(&format!("{DEFINITIONS}/foos.networking.k8s.io"))
        .await
        .json();
    let established = status["status"]["conditions"].as_array().unwrap().iter();
    assert!(
        established
            .clone()
            .any(|it| it["type"] == "Established" && it["status"] == "True")
    );
}

#[tokio::test]
async fn a_group_named_like_a_package_does_not_affect_built_in_schemas() {
    let server = TestServer::start().await;
    let v2 = server.get("/openapi/v2").await.expect(200).json();
    let pod = "io.k8s.api.core.v1.Pod";
    let meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    let impostors = [
        definition("core.api.k8s.io", "pods", "Pod", &["v1"]),
        definition(
            "meta.apis.pkg.apimachinery.k8s.io",
            "metas",
            "ObjectMeta",
            &["v1"],
        ),
    ];
    for impostor in &impostors {
        server.post(DEFINITIONS, impostor).await.expect(201);
    }
    let after = server.get("/openapi/v2").await.expect(200).json();
    for name in [pod, "io.k8s.api.core.v1.PodList", meta] {
        assert_eq!(
            v2["definitions"][name], after["definitions"][name],
            "{name}"
        );
        assert!(v2["definitions"][name].is_object(), "{name}");
    }
    let own = &after["definitions"][format!("{pod}_v2")];
    assert!(own["properties"]["own"].is_object(), "{own}");
    let v3 = server
        .get("/openapi/v3/apis/core.api.k8s.io/v1")
        .await
        .expect(200)
        .json();
    let schemas = &v3["components"]["schemas"];
    assert!(schemas[format!("{pod}_v2")]["properties"]["own"].is_object());
    assert!(schemas["io.k8s.api.core.v1.PodList_v2"].is_object());
    let of_meta = "/openapi/v3/apis/meta.apis.pkg.apimachinery.k8s.io/v1";
    let v3 = server.get(of_meta).await.expect(200).json();
    let schemas = &v3["components"]["schemas"];
    assert!(schemas[meta]["properties"]["name"].is_object());
    assert!(schemas[format!("{meta}_v2")]["properties"]["own"].is_object());
}

#[tokio::test]
async fn an_empty_group_is_the_core_group() {
    let server = TestServer::start().await;
    for (name, version) in [("a", "/v1"), ("b", "/"), ("c", "")] {
        let mut map = config_map(name);
        map["apiVersion"] = json!(version);
        let created = server.post(MAPS, &map).await.expect(201).json();
        assert_eq!(created["apiVersion"], "v1", "{version}");
    }
    for version in ["/v2", "//v1", "apps/v1"] {
        let mut map = config_map("d");
        map["apiVersion"] = json!(version);
        server.post(MAPS, &map).await.expect(400);
    }
}

#[tokio::test]
async fn a_new_object_may_have_an_invalid_resource_version() {
    let server = TestServer::start().await;
    for (number, version) in ["junk", "-1", "+5", "0", ""].into_iter().enumerate() {
        let mut map = config_map(&format!("m{number}"));
        map["metadata"]["resourceVersion"] = json!(version);
        let created = server.post(MAPS, &map).await.expect(201);
        assert!(created.version() > 0, "{version}");
    }
    for version in ["1", "007", "99999"] {
        let mut map = config_map("refused");
        map["metadata"]["resourceVersion"] = json!(version);
        let (code, _, message) = server.post(MAPS, &map).await.status();
        assert_eq!(code, 500);
        assert_eq!(
            message,
            "resourceVersion should not be set on objects to be created"
        );
    }
}

#[tokio::test]
async fn a_strategic_patch_of_the_wrong_type_reports_what_could_not_be_restored() {
    let server = TestServer::start().await;
    server.post(MAPS, &config_map("a")).await.expect(201);
    let path = format!("{MAPS}/a");
    for (patch, words) in [
        (
            json!({"metadata": {"labels": "x"}}),
            "cannot restore map from string",
        ),
        (json!({"data": 7}), "cannot restore map from int64"),
        (
            json!({"metadata": {"finalizers": true}}),
            "cannot restore slice from bool",
        ),
    ] {
        let (code, reason, message) = server.patch(&path, STRATEGIC, &patch).await.status();
        assert_eq!(
            (code, reason.as_str()),
            (422, "Invalid"),
            "{patch}: {message}"
        );
        assert!(
            message.ends_with(&format!(": {words}")),
            "{patch}: {message}"
        );
    }
}

#[tokio::test]
async fn members_of_discovery_have_the_order_of_upstream() {
    let server = TestServer::start().await;
    let listed = server.get("/apis/apps/v1").await.expect(200).text();
    let start = r#"{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"apps/v1","resources":[{"name":"controllerrevisions","singularName":"controllerrevision","namespaced":true,"kind":"ControllerRevision","verbs":["#;
    assert!(listed.starts_with(start), "{listed}");
    let scale = r#"{"name":"deployments/scale","singularName":"","namespaced":true,"group":"autoscaling","version":"v1","kind":"Scale","verbs":["#;
    assert!(listed.contains(scale), "{listed}");
    let deployments = listed.split(r#"{"name":"deployments","#).nth(1).unwrap();
    let order = ["verbs", "shortNames", "categories", "storageVersionHash"];
    let places: Vec<usize> = order
        .iter()
        .map(|member| deployments.find(&format!("\"{member}\":")).unwrap())
        .collect();
    assert!(places.is_sorted(), "{places:?}");
    let pretty = server
        .get("/apis/apps?pretty=true")
        .await
        .expect(200)
        .text();
    assert!(
        pretty.starts_with(
            "{\n  \"kind\": \"APIGroup\",\n  \"apiVersion\": \"v1\",\n  \"name\": \"apps\",\n"
        ),
        "{pretty}"
    );
    let version = server.get("/version").await.expect(200).text();
    assert!(
        version.starts_with("{\n  \"major\": \"1\",\n  \"minor\": \"36\",\n"),
        "{version}"
    );
    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let list = server.get_as("/api", aggregated).await.expect(200).text();
    let start = r#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[{"metadata":{},"versions":[{"version":"v1","resources":[{"resource":"#;
    assert!(list.starts_with(start), "{}", &list[..400]);
}

#[tokio::test]
async fn rejections_name_users_as_upstream_does() {
    let server = TestServer::builder()
        .token("s3cret", "ann", &["dev"])
        .token("root", "root", &["system:masters"])
        .listening()
        .start()
        .await;
    let mut connection = Connection::http1(&server, As::Nobody).await;
    let root = ("authorization", "Bearer root");
    let headers = [root, ("impersonate-uid", "7")];
    let (code, _, message) = connection.send("GET", MAPS, &headers, "").await.status();
    assert_eq!(code, 400);
    assert!(
        message.ends_with(" without impersonating a user name"),
        "{message}"
    );
    let headers = [root, ("impersonate-user", "<ann>&co")];
    let (code, _, message) = connection.send("GET", MAPS, &headers, "").await.status();
    assert_eq!(code, 403);
    assert!(
        message.contains("User \"&lt;ann&gt;&amp;co\" cannot list"),
        "{message}"
    );
    // The rejection names the impersonated resource: a service account only if the name is one.
    let ann = ("authorization", "Bearer s3cret");
    for (user, what) in [
        (
            "system:serviceaccount:a:b",
            "\"serviceaccounts\" in API group \"\" in the namespace \"a\"",
        ),
        (
            "system:serviceaccount:a:b:c",
            "\"users\" in API group \"\" at the cluster scope",
        ),
    ] {
        let headers = [ann, ("impersonate-user", user)];
        let (code, _, message) = connection.send("GET", MAPS, &headers, "").await.status();
        assert_eq!(code, 403);
        assert!(
            message.ends_with(&format!("cannot impersonate resource {what}")),
            "{message}"
        );
    }
}

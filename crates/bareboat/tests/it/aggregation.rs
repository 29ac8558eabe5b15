//! Groups and versions that other API servers serve: APIServices, their conditions, and requests that are forwarded.

mod availability;
mod behind;
mod cable;
mod faults;
mod garbage;
mod severed;

use crate::backend::{Ca, Speaks, TestBackend};
use crate::socket::{As, Connection};
use crate::support::*;
use bareboat::ClientIdentity;
use bareboat_testing::{Builder, TestServer};
use std::time::Duration;

const SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const NAME: &str = "v1.agg.example.com";
const ROOT: &str = "/apis/agg.example.com/v1";
const THINGS: &str = "/apis/agg.example.com/v1/namespaces/default/things";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Returns the CA that backends trust, and a server with a certificate of it.
fn builder() -> (Ca, Builder) {
    let callers = Ca::new();
    let (chain, key) = callers.client("front-proxy-client");
    let identity = ClientIdentity::from_pem(&chain, &key).unwrap();
    let builder = TestServer::builder()
        .token("secret-of-jane", "jane", &["people"])
        .with(move |builder| builder.client_identity(identity.clone()));
    (callers, builder)
}

/// An APIService whose server is at a URL.
pub(crate) fn at_url(backend: &TestBackend) -> Value {
    let client = backend.by_url("");
    json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": NAME, "annotations": {"bareboat.dev/url": client["url"]}},
        "spec": {
            "group": "agg.example.com", "version": "v1",
            "groupPriorityMinimum": 2000, "versionPriority": 20,
            "service": {"namespace": "default", "name": "vms"},
            "caBundle": client["caBundle"],
        },
    })
}

/// Waits until the condition `Available` of an APIService has a status and a reason, and returns its message.
pub(crate) async fn until(server: &TestServer, name: &str, status: &str, reason: &str) -> String {
    soon(async {
        loop {
            let answer = server.get(&format!("{SERVICES}/{name}")).await;
            let last = answer.json()["status"]["conditions"][0].clone();
            if last["status"] == status && last["reason"] == reason {
                return text(&last["message"]).to_owned();
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    })
    .await
}

/// Returns a listening server and a backend that serves its group.
async fn start(speaks: Speaks) -> (TestServer, TestBackend) {
    start_with(speaks, |builder| builder).await
}

/// The same with more settings.
pub(crate) async fn start_with(
    speaks: Speaks,
    more: impl FnOnce(Builder) -> Builder,
) -> (TestServer, TestBackend) {
    let (callers, builder) = builder();
    let backend = TestBackend::start(&callers, speaks).await;
    let server = more(builder.listening()).start().await;
    server.post(SERVICES, &at_url(&backend)).await.expect(201);
    until(&server, NAME, "True", "Passed").await;
    (server, backend)
}

#[tokio::test]
async fn another_server_answers_with_the_identity_of_the_caller() {
    for speaks in [Speaks::Http1, Speaks::Http2(100)] {
        let (server, _backend) = start(speaks).await;
        let mut connection = Connection::http1(&server, As::Admin).await;
        let headers = [
            ("x-remote-user", "forged"),
            ("x-remote-group", "system:masters"),
            ("impersonate-user", "jane"),
            ("impersonate-group", "people"),
            ("impersonate-uid", "7"),
            ("impersonate-extra-scopes", "view"),
            ("audit-id", "my-request"),
        ];
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "things"},
            "rules": [{"apiGroups": ["agg.example.com"], "resources": ["things"], "verbs": ["create"]}]});
        let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
        server.post(roles, &role).await.expect(201);
        let path = format!("{THINGS}?dryRun=All&fieldManager=a%2Fb");
        let refused = connection.send("POST", &path, &headers, "{}").await;
        assert_eq!(refused.status().0, 403, "it is authorized here");
        let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "things"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "things"},
            "subjects": [{"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}]});
        let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
        server.post(bindings, &binding).await.expect(201);
        let said = connection
            .send("POST", &path, &headers, "{}")
            .await
            .expect(200);
        assert_eq!(said.header("x-backend"), "yes");
        let said = said.json();
        assert_eq!(said["caller"], "front-proxy-client");
        assert_eq!(said["method"], "POST");
        assert_eq!(said["target"], path);
        assert_eq!(said["body"], "{}");
        let told = &said["headers"];
        assert_eq!(told["x-remote-user"], json!(["jane"]));
        assert_eq!(
            told["x-remote-group"],
            json!(["people", "system:authenticated"])
        );
        assert_eq!(told["x-remote-uid"], json!(["7"]));
        assert_eq!(told["x-remote-extra-scopes"], json!(["view"]));
        assert_eq!(told["audit-id"], json!(["my-request"]));
        assert_eq!(told["authorization"], Value::Null);
        assert_eq!(told["impersonate-user"], Value::Null);
    }
}

#[tokio::test]
async fn documents_show_the_resources_of_another_server() {
    let (server, _backend) = start(Speaks::Http2(100)).await;
    let groups = server.get("/apis").await.expect(200).json();
    let groups = groups["groups"].as_array().unwrap();
    assert!(
        groups
            .iter()
            .any(|group| group["name"] == "agg.example.com")
    );
    let group = server.get("/apis/agg.example.com").await.expect(200).json();
    assert_eq!(
        group["preferredVersion"]["groupVersion"],
        "agg.example.com/v1"
    );
    let list = server.get(ROOT).await.expect(200);
    assert_eq!(list.header("x-backend"), "yes");
    assert_eq!(list.json()["resources"][0]["name"], "things");
    let accept = [("accept", AGGREGATED)];
    let all = server.send("GET", "/apis", &accept, "").await.expect(200);
    let etag = all.header("etag").to_owned();
    let all = all.json();
    let items = all["items"].as_array().unwrap();
    let ours = items
        .iter()
        .find(|item| item["metadata"]["name"] == "agg.example.com");
    let version = &ours.unwrap()["versions"][0];
    assert_eq!(version["freshness"], "Current");
    assert_eq!(version["resources"][0]["resource"], "things");
    assert_eq!(
        version["resources"][0]["subresources"][0]["subresource"],
        "console"
    );
    // Its priority puts it before all groups of definitions, and after the built-in ones.
    assert_eq!(items.last().unwrap()["metadata"]["name"], "agg.example.com");
    let again = [("accept", AGGREGATED), ("if-none-match", etag.as_str())];
    server.send("GET", "/apis", &again, "").await.expect(304);

    // The server has no OpenAPI 3, so its OpenAPI 2 is converted.
    let index = server.get("/openapi/v3").await.expect(200).json();
    let url = text(&index["paths"]["apis/agg.example.com/v1"]["serverRelativeURL"]).to_owned();
    let document = server.get(&url).await.expect(200);
    assert_eq!(document.header("cache-control"), "public, immutable");
    let document = document.json();
    let thing = &document["components"]["schemas"]["com.example.agg.v1.Thing"];
    assert_eq!(thing["description"], "A thing of another server.");
    let get = &document["paths"]["/apis/agg.example.com/v1/namespaces/{namespace}/things"]["get"];
    let schema = &get["responses"]["200"]["content"]["application/json"]["schema"];
    assert_eq!(
        schema["$ref"],
        "#/components/schemas/com.example.agg.v1.Thing"
    );
    let moved = server
        .get("/openapi/v3/apis/agg.example.com/v1?hash=old")
        .await;
    assert_eq!(moved.expect(301).header("location"), url);
    let v2 = server.get("/openapi/v2").await.expect(200).json();
    assert!(v2["definitions"]["com.example.agg.v1.Thing"].is_object());
    assert!(v2["definitions"]["io.k8s.api.core.v1.ConfigMap"].is_object());
    assert_eq!(v2["paths"]["/apis/other.example.com/v1/"], Value::Null);
}

#[tokio::test]
async fn a_remote_version_hides_a_definition_and_gives_it_back() {
    let (callers, builder) = builder();
    let backend = TestBackend::start(&callers, Speaks::Http1).await;
    let server = builder.start().await;
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.agg.example.com"},
        "spec": {
            "group": "agg.example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    server.post(definitions, &definition).await.expect(201);
    let thing =
        json!({"apiVersion": "agg.example.com/v1", "kind": "Thing", "metadata": {"name": "own"}});
    server.post(THINGS, &thing).await.expect(201);
    // The definition has an APIService, which its user changes.
    let path = format!("{SERVICES}/{NAME}");
    for _ in 0..200 {
        if server.get(&path).await.code == 200 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut taken = at_url(&backend);
    taken["metadata"]["labels"] = json!({"kube-aggregator.kubernetes.io/automanaged": null});
    server.patch(&path, MERGE, &taken).await.expect(200);
    until(&server, NAME, "True", "Passed").await;
    let said = server.get(&format!("{THINGS}/own")).await.expect(200);
    assert_eq!(said.header("x-backend"), "yes");
    server.delete(&path).await.expect(200);
    let own = server.get(&format!("{THINGS}/own")).await.expect(200);
    assert_eq!(own.header("x-backend"), "");
    assert_eq!(own.json()["metadata"]["name"], "own");
    // The controller registers the definition again.
    until(&server, NAME, "True", "Local").await;
}

async fn frame(body: &mut hyper::body::Incoming) -> bytes::Bytes {
    let frame = http_body_util::BodyExt::frame(body);
    soon(frame).await.unwrap().unwrap().into_data().unwrap()
}

#[tokio::test]
async fn watches_stream_and_are_counted() {
    let (server, backend) = start(Speaks::Http2(100)).await;
    let mut connection = Connection::http1(&server, As::Admin).await;
    let path = format!("{THINGS}?watch=1&do=stream");
    let mut watch = connection.start("GET", &path, &[], "").await.into_body();
    assert_eq!(frame(&mut watch).await, "first\n");
    backend.go_on();
    assert_eq!(frame(&mut watch).await, "more\n");
    let metrics = server.get("/metrics").await.expect(200).text();
    let running = "apiserver_longrunning_requests{component=\"apiserver\",group=\"agg.example.com\",resource=\"things\"";
    assert!(metrics.contains(running), "it is counted");
    drop(watch);
    let counted = "apiserver_request_total{code=\"200\",component=\"apiserver\",dry_run=\"\",group=\"agg.example.com\"";
    assert!(metrics.contains(counted));
}

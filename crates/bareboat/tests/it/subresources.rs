//! Subresources that a definition declares and a backend serves.

mod audited;

mod failures;
mod kinds;
mod streams;

use crate::backend::{Ca, Speaks, TestBackend};
use crate::socket::{As, Connection};
use crate::support::*;
use bareboat::ClientIdentity;
use bareboat::api::kind::BoxFuture;
use bareboat::server::authz::{Attributes, Authorizer, Decision};
use bareboat_testing::{Builder, TestServer};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const NAME: &str = "machines.vms.example.com";
const MACHINES: &str = "/apis/vms.example.com/v1/namespaces/default/machines";
const ONE: &str = "/apis/vms.example.com/v1/namespaces/default/machines/one";

/// An authorizer: Jane may start the machine `one`, and read every console.
struct Rules;

impl Authorizer for Rules {
    fn authorize<'a>(&'a self, attributes: Attributes<'a>) -> BoxFuture<'a, Decision> {
        let info = attributes.info;
        let part = (info.verb.as_str(), info.subresource.as_str());
        let allowed = attributes.user.name == "jane"
            && info.resource == "machines"
            && (part == ("create", "start") && info.name == "one" || part == ("get", "console"));
        Box::pin(std::future::ready(if allowed {
            Decision::Allow(String::new())
        } else {
            Decision::NoOpinion(String::new())
        }))
    }
}

fn definition(subresources: &Value) -> Value {
    let version = |name: &str, storage: bool| {
        json!({
            "name": name, "served": true, "storage": storage, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME, "annotations": {"bareboat.dev/subresources": subresources.to_string()}},
        "spec": {
            "group": "vms.example.com", "scope": "Namespaced",
            "names": {"plural": "machines", "kind": "Machine"},
            "versions": [version("v1", true), version("v2", false)],
        },
    })
}

fn machine(name: &str) -> Value {
    json!({"apiVersion": "vms.example.com/v1", "kind": "Machine", "metadata": {"name": name}})
}

/// Returns the declaration that most tests use.
pub(crate) fn declared(backend: &TestBackend) -> Value {
    json!([
        {"name": "start", "verbs": ["create", "update"], "clientConfig": backend.by_url("/base/")},
        {"name": "console", "verbs": ["get"], "versions": ["v1"], "paths": true, "timeoutSeconds": 600,
         "responseKind": {"group": "meta.k8s.io", "version": "v1", "kind": "Status"},
         "clientConfig": backend.by_url("")},
    ])
}

/// Returns the CA that backends trust, and a server with a certificate of it.
fn builder() -> (Ca, Builder) {
    let callers = Ca::new();
    let (chain, key) = callers.client("front-proxy-client");
    let identity = ClientIdentity::from_pem(&chain, &key).unwrap();
    let builder = TestServer::builder()
        .token("secret-of-jane", "jane", &["people", "admins of \u{fc}"])
        .with(move |builder| builder.client_identity(identity.clone()).authorizer(Rules));
    (callers, builder)
}

/// Returns a listening server with the machine `one`, and its backend.
async fn start(speaks: Speaks) -> (TestServer, TestBackend) {
    let (callers, builder) = builder();
    let backend = TestBackend::start(&callers, speaks).await;
    let server = builder.listening().start().await;
    define(&server, &declared(&backend)).await;
    (server, backend)
}

pub(crate) async fn define(server: &TestServer, subresources: &Value) {
    let definition = definition(subresources);
    server.post(DEFINITIONS, &definition).await.expect(201);
    server.post(MACHINES, &machine("one")).await.expect(201);
}

#[tokio::test]
async fn the_backend_gets_the_user_and_clients_cannot_forge_it() {
    for (speaks, http) in [
        (Speaks::Http1, "HTTP/1.1"),
        (Speaks::Http2(100), "HTTP/2.0"),
    ] {
        let (server, backend) = start(speaks).await;
        let one = server.get(ONE).await.json();
        let mut connection = Connection::http1(&server, As::Nobody).await;
        let headers = [
            ("authorization", "Bearer secret-of-jane"),
            ("cookie", "session=secret"),
            ("x-remote-user", "root"),
            ("x-remote-group", "system:masters"),
            ("x_remote_group", "system:masters"),
            ("x-remote-extra-scopes", "all"),
            ("bareboat-object-uid", "forged"),
            ("x-forwarded-for", "10.1.1.1"),
            ("audit-id", "my-request"),
            ("connection", "x-mine"),
            ("x-mine", "1"),
            ("content-type", "text/plain"),
            ("x-kept", "yes"),
        ];
        let path = format!("{ONE}/start?force=true&x=%2F..%2F");
        let answer = connection.send("POST", &path, &headers, "now").await;
        let said = answer.expect(200);
        assert_eq!(said.header("x-backend"), "yes");
        assert_eq!(said.header("audit-id"), "my-request");
        let said = said.json();
        assert_eq!(said["caller"], "front-proxy-client");
        assert_eq!(said["http"], http);
        assert_eq!(said["method"], "POST");
        assert_eq!(said["target"], format!("/base{path}"));
        assert_eq!(said["body"], "now");
        let mut headers = said["headers"].as_object().unwrap().clone();
        if http == "HTTP/1.1" {
            let host = format!("localhost:{}", backend.port);
            assert_eq!(headers.remove("host").unwrap(), json!([host]));
        }
        assert_eq!(
            Value::Object(headers),
            json!({
                "audit-id": ["my-request"],
                "bareboat-object-resource-version": [one["metadata"]["resourceVersion"]],
                "bareboat-object-uid": [one["metadata"]["uid"]],
                "content-length": ["3"],
                "content-type": ["text/plain"],
                "x-forwarded-for": ["10.1.1.1, 127.0.0.1"],
                "x-forwarded-host": ["localhost"],
                "x-forwarded-proto": ["https"],
                "x-kept": ["yes"],
                "x-remote-group": ["people", "admins of \u{fc}", "system:authenticated"],
                "x-remote-user": ["jane"],
            })
        );
        // An impersonated user is forwarded instead of the real one.
        let headers = [
            ("impersonate-user", "jane"),
            ("impersonate-group", "people"),
            ("impersonate-extra-scopes", "view"),
        ];
        let answer = server
            .send("PUT", &format!("{ONE}/start"), &headers, "")
            .await;
        assert_eq!(
            answer.code,
            403,
            "jane may create, not update: {}",
            answer.text()
        );
        let answer = server
            .send("POST", &format!("{ONE}/start"), &headers, "")
            .await;
        let said = answer.expect(200).json();
        assert_eq!(said["headers"]["x-remote-user"], json!(["jane"]));
        assert_eq!(said["headers"]["x-remote-extra-scopes"], json!(["view"]));
        assert_eq!(said["headers"]["x-forwarded-for"], Value::Null);
    }
}

#[tokio::test]
async fn forbidden_or_missing_targets_are_not_forwarded() {
    let (server, backend) = start(Speaks::Http2(100)).await;
    let mut connection = Connection::http1(&server, As::Nobody).await;
    let jane = [("authorization", "Bearer secret-of-jane")];
    let v2 = ONE.replace("/v1/", "/v2/");
    let cases = [
        (&[][..], "POST", format!("{ONE}/start"), 401),
        (&jane, "PUT", format!("{ONE}/start"), 403),
        (&jane, "POST", format!("{MACHINES}/two/start"), 403),
        (&jane, "GET", format!("{MACHINES}/two/console"), 404),
        (&jane, "GET", format!("{v2}/console"), 404),
        (&jane, "GET", format!("{ONE}/console/%2e%2e/start"), 400),
        (&jane, "GET", format!("{ONE}/console/a%2Fb"), 400),
        (&jane, "GET", format!("{ONE}/console/a//b"), 400),
    ];
    for (headers, method, path, code) in cases {
        let answer = connection.send(method, &path, headers, "").await;
        assert_eq!(answer.status().0, code, "{method} {path}");
    }
    let cases = [
        ("GET", format!("{ONE}/start"), 405),
        ("DELETE", format!("{ONE}/start"), 405),
        ("POST", format!("{ONE}/console"), 405),
        ("OPTIONS", format!("{ONE}/console"), 405),
        ("POST", format!("{ONE}/start/now"), 404),
        ("POST", format!("{ONE}/stop"), 404),
        ("POST", format!("{MACHINES}/two/start"), 404),
    ];
    for (method, path, code) in cases {
        let answer = server.send(method, &path, &[], "").await;
        assert_eq!(answer.status().0, code, "{method} {path}");
    }
    // Machines are namespaced, so this path does not exist.
    let path = ONE.replace("/namespaces/default", "") + "/start";
    server.post(&path, &json!({})).await.expect(404);
    assert_eq!(backend.calls(), 0);
    let missing = server
        .post(&format!("{MACHINES}/two/start"), &json!({}))
        .await;
    let text = "machines.vms.example.com \"two\" not found";
    assert_eq!(missing.status().2, text);

    let path = format!("{ONE}/console/a/b%20c/?x=1");
    let answer = connection.send("GET", &path, &jane, "").await.expect(200);
    assert_eq!(answer.json()["target"], path);
    assert_eq!(backend.calls(), 1);
}

#[tokio::test]
async fn responses_are_forwarded_without_headers_of_the_server() {
    let (server, _backend) = start(Speaks::Http1).await;
    let headers = [("accept-encoding", "gzip")];
    let path = format!("{ONE}/console?do=cookies");
    let answer = server.send("GET", &path, &headers, "").await.expect(418);
    assert_eq!(answer.text(), "teapot");
    assert_eq!(answer.header("x-backend"), "yes");
    for name in [
        "set-cookie",
        "access-control-allow-origin",
        "x-hop",
        "content-encoding",
    ] {
        assert_eq!(answer.header(name), "", "{name}");
    }
    let head = server.send("HEAD", &path, &[], "").await.expect(418);
    assert_eq!(head.text(), "");
    // Query parameters of this server have no effect on forwarded requests.
    let path = format!("{ONE}/console?timeout=soon&watch=maybe&pretty=1");
    server.get(&path).await.expect(200);
}

#[tokio::test]
async fn discovery_and_openapi_list_declared_subresources() {
    let (server, _backend) = start(Speaks::Http1).await;
    let list = server
        .get("/apis/vms.example.com/v1")
        .await
        .expect(200)
        .json();
    let shown = |name: &str| {
        let all = list["resources"].as_array().unwrap();
        all.iter().find(|part| part["name"] == name).cloned()
    };
    assert_eq!(
        shown("machines/start").unwrap(),
        json!({"name": "machines/start", "singularName": "", "namespaced": true, "kind": "Machine",
               "verbs": ["create", "update"]})
    );
    assert_eq!(
        shown("machines/console").unwrap(),
        json!({"name": "machines/console", "singularName": "", "namespaced": true,
               "group": "meta.k8s.io", "version": "v1", "kind": "Status", "verbs": ["get"]})
    );
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let all = server.get_as("/apis", accept).await.expect(200).json();
    let groups = all["items"].as_array().unwrap();
    let group = groups
        .iter()
        .find(|group| group["metadata"]["name"] == "vms.example.com");
    let versions = group.unwrap()["versions"].as_array().unwrap().clone();
    let names = |version: &str| -> Vec<String> {
        let found = versions.iter().find(|found| found["version"] == version);
        let parts = found.unwrap()["resources"][0]["subresources"]
            .as_array()
            .unwrap();
        parts
            .iter()
            .map(|part| text(&part["subresource"]).to_owned())
            .collect()
    };
    assert_eq!(names("v1"), ["status", "start", "console"]);
    assert_eq!(names("v2"), ["status", "start"]);

    let document = server
        .get("/openapi/v3/apis/vms.example.com/v1")
        .await
        .expect(200)
        .json();
    let paths = document["paths"].as_object().unwrap();
    let at = "/apis/vms.example.com/v1/namespaces/{namespace}/machines/{name}";
    assert!(paths[&format!("{at}/start")]["post"].is_object());
    assert!(paths[&format!("{at}/start")]["put"].is_object());
    assert!(paths[&format!("{at}/start")].get("get").is_none());
    assert!(paths[&format!("{at}/console/{{path}}")]["get"].is_object());
    assert!(paths.get(&format!("{at}/start/{{path}}")).is_none());
    server.get("/openapi/v2").await.expect(200);
}

#[tokio::test]
async fn an_invalid_declaration_is_rejected_with_its_field() {
    let server = TestServer::start().await;
    let bad = json!([
        {"name": "scale", "verbs": ["watch"], "clientConfig": {"url": "http://vms.example"}},
        {"name": "start", "clientConfig": {}},
    ]);
    let answer = server
        .post(DEFINITIONS, &definition(&bad))
        .await
        .expect(422);
    let body = answer.json();
    let causes = body["details"]["causes"].as_array().unwrap();
    let fields: Vec<&str> = causes.iter().map(|cause| text(&cause["field"])).collect();
    let at = "metadata.annotations[bareboat.dev/subresources]";
    let expected = [
        "[0].name",
        "[0].verbs[0]",
        "[0].clientConfig.url",
        "[1].verbs",
        "[1].clientConfig",
    ];
    assert_eq!(fields, expected.map(|tail| format!("{at}{tail}")), "{body}");

    // Updates are validated too, unless the declaration is unchanged.
    let good = json!([]);
    server
        .post(DEFINITIONS, &definition(&good))
        .await
        .expect(201);
    let path = format!("{DEFINITIONS}/{NAME}");
    let patch = json!({"metadata": {"annotations": {"bareboat.dev/subresources": "{"}}});
    server.patch(&path, MERGE, &patch).await.expect(422);
    let patch = json!({"metadata": {"labels": {"a": "b"}}});
    server.patch(&path, MERGE, &patch).await.expect(200);
}

#[tokio::test]
async fn a_declaration_applies_when_it_is_written_and_ends_with_its_definition() {
    let (server, backend) = start(Speaks::Http2(100)).await;
    let path = format!("{DEFINITIONS}/{NAME}");
    let renamed =
        json!([{"name": "boot", "verbs": ["create"], "clientConfig": backend.by_url("")}]);
    let patch =
        json!({"metadata": {"annotations": {"bareboat.dev/subresources": renamed.to_string()}}});
    server.patch(&path, MERGE, &patch).await.expect(200);
    server
        .post(&format!("{ONE}/start"), &json!({}))
        .await
        .expect(404);
    server
        .post(&format!("{ONE}/boot"), &json!({}))
        .await
        .expect(200);

    // Instances that wait for a finalizer still have their subresources.
    let finalizer = json!({"metadata": {"finalizers": ["vms.example.com/off"]}});
    server.patch(ONE, MERGE, &finalizer).await.expect(200);
    let mut watch = server
        .watch(&format!(
            "{DEFINITIONS}?watch=1&fieldSelector=metadata.name={NAME}"
        ))
        .await;
    server.delete(&path).await.expect(200);
    server.post(MACHINES, &machine("two")).await.expect(403);
    server
        .post(&format!("{ONE}/boot"), &json!({}))
        .await
        .expect(200);
    let finalizer = json!({"metadata": {"finalizers": null}});
    server.patch(ONE, MERGE, &finalizer).await.expect(200);
    while !watch.brief().await.starts_with("DELETED") {}
    server
        .post(&format!("{ONE}/boot"), &json!({}))
        .await
        .expect(404);
}

//! Tests the rules in a whole server, in-process.

#![allow(clippy::unwrap_used)]

use admission::{CreatedBy, FewKeys};
use bareboat_testing::TestServer;
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;

async fn server() -> TestServer {
    let builder = TestServer::builder();
    let builder = builder.with(|server| server.mutator(CreatedBy).validator(FewKeys));
    builder.start().await
}

/// Sends a request; returns status and body of the response.
async fn send(server: &TestServer, method: &str, path: &str, body: &str) -> (StatusCode, String) {
    let patch = method == "PATCH";
    let json = ["application/json", "application/merge-patch+json"][usize::from(patch)];
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", json)
        .body(Bytes::from(body.to_owned()))
        .unwrap();
    let answer = server.call(request).await;
    let status = answer.status();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";

fn configmap(name: &str, keys: usize) -> String {
    let data: Vec<String> = (0..keys).map(|key| format!(r#""k{key}":"v""#)).collect();
    let data = data.join(",");
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}},"data":{{{data}}}}}"#
    )
}

#[tokio::test]
async fn a_new_object_gets_the_label_of_its_creator() {
    let server = server().await;
    let (status, body) = send(&server, "POST", CONFIGMAPS, &configmap("small", 3)).await;
    assert_eq!(status, StatusCode::CREATED, "{body}");
    assert!(body.contains(r#""created-by":"admin""#), "{body}");
}

#[tokio::test]
async fn too_many_keys_are_rejected_until_the_namespace_allows_them() {
    let server = server().await;
    let (status, body) = send(&server, "POST", CONFIGMAPS, &configmap("big", 4)).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(body.contains("at most three keys"), "{body}");

    let label = r#"{"metadata":{"labels":{"large":"yes"}}}"#;
    let (status, body) = send(&server, "PATCH", "/api/v1/namespaces/default", label).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    let (status, body) = send(&server, "POST", CONFIGMAPS, &configmap("big", 4)).await;
    assert_eq!(status, StatusCode::CREATED, "{body}");
}

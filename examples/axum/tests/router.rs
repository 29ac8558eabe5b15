//! Tests the router without a socket: its own page, the API, and authentication.

#![allow(clippy::unwrap_used)]

use axum::body::Body;
use axum_app::router;
use bareboat::prelude::*;
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use tower::ServiceExt as _;

/// Sends a request; returns status and body of the response.
async fn send(server: &Server, request: Request<Body>) -> (StatusCode, String) {
    let answer = router(server.clone()).oneshot(request).await.unwrap();
    let status = answer.status();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn the_api_is_served_together_with_other_routes() {
    let server = Server::builder().control_plane().build().unwrap();
    let request = Request::get("/").body(Body::empty()).unwrap();
    let (status, body) = send(&server, request).await;
    assert_eq!(status, StatusCode::OK);
    assert!(body.contains("/apis"), "{body}");

    let namespace = r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"fleet"}}"#;
    let request = Request::post("/api/v1/namespaces")
        .header("authorization", "Bearer secret")
        .header("content-type", "application/json")
        .body(Body::from(namespace))
        .unwrap();
    let (status, body) = send(&server, request).await;
    assert_eq!(status, StatusCode::CREATED, "{body}");
    assert!(body.contains(r#""name":"fleet""#), "{body}");
}

#[tokio::test]
async fn a_request_without_the_token_is_rejected() {
    let server = Server::builder().control_plane().build().unwrap();
    let request = Request::get("/api/v1/namespaces")
        .body(Body::empty())
        .unwrap();
    let (status, _) = send(&server, request).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
}

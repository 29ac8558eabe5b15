//! A test of the subresource `notes/preview`.

use bareboat_testing::TestServer;
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;

#[tokio::test]
async fn the_subresource_answers_about_its_object() {
    let builder = TestServer::builder().bare();
    let server = builder
        .with(|server| journal::kinds(server).expect("the kinds are right"))
        .start()
        .await;
    let path = "/apis/fleet.example.org/v1/namespaces/default/notes";
    let object = r#"{"apiVersion":"fleet.example.org/v1","kind":"Note","metadata":{"name":"first"},"spec":{"title":"Hello"}}"#;
    let create = Request::post(path).header("content-type", "application/json");
    let created = server
        .call(create.body(Bytes::from(object)).expect("it is a request"))
        .await;
    assert_eq!(created.status(), StatusCode::CREATED);
    let get = Request::get(format!("{path}/first/preview")).body(Bytes::new());
    let answer = server.call(get.expect("it is a request")).await;
    assert_eq!(answer.status(), StatusCode::OK);
    let body = answer
        .into_body()
        .collect()
        .await
        .expect("it ends")
        .to_bytes();
    assert!(String::from_utf8_lossy(&body).contains("Hello"), "{body:?}");
}

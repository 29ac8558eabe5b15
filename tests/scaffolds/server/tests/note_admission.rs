//! A test of the admission rules of notes.

use bareboat_testing::TestServer;
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;

#[tokio::test]
async fn objects_are_changed_and_refused() {
    let builder = TestServer::builder().bare();
    let server = builder
        .with(|server| journal::kinds(server).expect("the kinds are right"))
        .start()
        .await;
    for (name, wanted, words) in [
        ("first", StatusCode::CREATED, r#""changed-by""#),
        (
            "forbidden-one",
            StatusCode::FORBIDDEN,
            "must not begin with",
        ),
    ] {
        let object = format!(
            r#"{{"apiVersion":"fleet.example.org/v1","kind":"Note","metadata":{{"name":"{name}"}},"spec":{{"title":"Hello"}}}}"#
        );
        let create = Request::post("/apis/fleet.example.org/v1/namespaces/default/notes");
        let create = create
            .header("content-type", "application/json")
            .body(Bytes::from(object));
        let answer = server.call(create.expect("it is a request")).await;
        assert_eq!(answer.status(), wanted);
        let body = answer
            .into_body()
            .collect()
            .await
            .expect("it ends")
            .to_bytes();
        assert!(String::from_utf8_lossy(&body).contains(words), "{body:?}");
    }
}

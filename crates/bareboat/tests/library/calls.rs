//! Requests to a server in the same process.

use bareboat::prelude::*;
use bareboat::server::RequestBody;
use http_body_util::BodyExt as _;

#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Post {
    pub(crate) spec: PostSpec,
}
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct PostSpec {
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) draft: bool,
}

pub(crate) const POSTS: &str = "/apis/blog.example.com/v1/namespaces/default/posts";

pub(crate) fn posts() -> TypedKind {
    TypedKind::new("blog.example.com", "posts", "Post").version::<Post>("v1")
}

pub(crate) fn user(name: &str) -> User {
    User {
        name: name.into(),
        groups: vec!["system:authenticated".into()],
        ..User::default()
    }
}

/// Returns the body of a post.
pub(crate) fn post(name: &str, draft: bool) -> Value {
    value!({
        "apiVersion": "blog.example.com/v1", "kind": "Post", "metadata": {"name": name},
        "spec": {"title": name, "draft": draft},
    })
}

fn request(method: &str, path: &str, body: Option<&Value>) -> http::Request<RequestBody> {
    let content = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let body = body.map(Value::to_json).unwrap_or_default();
    http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content)
        .body(RequestBody::Memory(body.into()))
        .unwrap()
}

/// Sends a request as a user; returns code and body of the answer.
pub(crate) async fn send(
    server: &Server,
    name: &str,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> (u16, Value) {
    let answer = server.call(user(name), request(method, path, body)).await;
    let code = answer.status().as_u16();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or_default())
}

/// Reads as a user; the answer must be a success.
pub(crate) async fn get(server: &Server, name: &str, path: &str) -> Value {
    let (code, body) = send(server, name, "GET", path, None).await;
    assert_eq!(code, 200, "{path}: {body}");
    body
}

/// Writes as a user; the answer must be a success.
pub(crate) async fn write(
    server: &Server,
    name: &str,
    method: &str,
    path: &str,
    body: &Value,
) -> Value {
    let (code, answer) = send(server, name, method, path, Some(body)).await;
    assert!(code < 300, "{method} {path}: {answer}");
    answer
}

/// Returns the names of a list.
pub(crate) fn names(list: &Value) -> Vec<String> {
    let items = list.get("items").and_then(Value::as_array).unwrap_or(&[]);
    let name = |item: &Value| {
        item.at(&["metadata", "name"])
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    items.iter().filter_map(name).collect()
}

/// The events of a watch, as they arrive.
pub(crate) struct Watch {
    body: bareboat::server::Body,
    rest: Vec<u8>,
}

impl Watch {
    pub(crate) async fn start(server: &Server, name: &str, path: &str) -> Watch {
        let answer = server.call(user(name), request("GET", path, None)).await;
        assert_eq!(answer.status(), 200);
        let rest = Vec::new();
        let body = answer.into_body();
        Watch { body, rest }
    }

    /// Returns type and name of the next event.
    pub(crate) async fn next(&mut self) -> (String, String) {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                let event: Value = serde_json::from_slice(&line).unwrap();
                let text = |path: &[&str]| {
                    let found = event.at(path).and_then(Value::as_str);
                    found.unwrap_or_default().to_owned()
                };
                return (text(&["type"]), text(&["object", "metadata", "name"]));
            }
            let frame = self.body.frame().await.expect("the watch goes on").unwrap();
            self.rest.extend(frame.into_data().unwrap());
        }
    }
}

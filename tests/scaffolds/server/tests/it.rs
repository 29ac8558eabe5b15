//! Tests against the server in this process, without a socket.

use bareboat_testing::TestServer;
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

const PATH: &str = "/apis/fleet.example.org/v1/namespaces/default/notes";

async fn server() -> TestServer {
    let builder = TestServer::builder().bare();
    builder
        .with(|server| journal::kinds(server).expect("the kinds are right"))
        .start()
        .await
}

/// Sends a request; returns status and body of the answer.
async fn send(server: &TestServer, method: &str, path: &str, body: &str) -> (StatusCode, String) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(Bytes::from(body.to_owned()))
        .expect("it is a request");
    let answer = server.call(request).await;
    let status = answer.status();
    let body = answer
        .into_body()
        .collect()
        .await
        .expect("it ends")
        .to_bytes();
    (status, String::from_utf8_lossy(&body).into_owned())
}

fn object(spec: &str) -> String {
    format!(
        r#"{{"apiVersion":"fleet.example.org/v1","kind":"Note","metadata":{{"name":"first"}},"spec":{spec}}}"#
    )
}

#[tokio::test]
async fn objects_get_defaults() {
    let server = server().await;
    let (status, body) = send(&server, "POST", PATH, &object(r#"{"title":"Hello"}"#)).await;
    assert_eq!(status, StatusCode::CREATED, "{body}");
    assert!(body.contains(r#""priority":5"#), "{body}");
    let (status, body) = send(&server, "GET", &format!("{PATH}/first"), "").await;
    assert_eq!(status, StatusCode::OK, "{body}");
}

#[tokio::test]
async fn objects_that_break_the_rules_are_refused() {
    let server = server().await;
    let (status, body) = send(
        &server,
        "POST",
        PATH,
        &object(r#"{"title":"","priority":11}"#),
    )
    .await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
    for field in ["spec.title", "spec.priority"] {
        assert!(body.contains(field), "{body}");
    }
}

#[tokio::test]
async fn tables_have_columns() {
    let server = server().await;
    send(&server, "POST", PATH, &object(r#"{"title":"Hello"}"#)).await;
    let request = Request::get(PATH)
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(Bytes::new())
        .expect("it is a request");
    let answer = server.call(request).await;
    let body = answer
        .into_body()
        .collect()
        .await
        .expect("it ends")
        .to_bytes();
    let body = String::from_utf8_lossy(&body);
    assert!(
        body.contains("Priority") && body.contains("Hello"),
        "{body}"
    );
}

/// Container runtimes end a program with SIGTERM.
#[test]
fn the_program_ends_when_it_is_told_to() {
    let folder = std::env::temp_dir().join(format!("journal-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for its files");
    let mut program = Command::new(env!("CARGO_BIN_EXE_journal"))
        .args(["--bind", "127.0.0.1:0"])
        .current_dir(&folder)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut output = BufReader::new(program.stdout.take().expect("it is piped"));
    let mut line = String::new();
    output.read_line(&mut line).expect("it says something");
    assert!(line.starts_with("serving on https://"), "{line}");
    let told = Command::new("kill").arg(program.id().to_string()).status();
    assert!(told.expect("kill runs").success());
    assert!(program.wait().expect("it ends").success());
    std::fs::remove_dir_all(&folder).expect("its files are removed");
}

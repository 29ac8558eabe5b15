//! Clients that do not read: their memory is bounded, other clients do not wait, and they are disconnected.

use crate::socket::{As, Connection, narrow};
use crate::support::*;
use bareboat_testing::TestServer;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const PATIENCE: Duration = Duration::from_secs(10);
const NEVER: Duration = Duration::from_secs(3600);
const OBJECT: usize = 600 << 10;

async fn server(stalled: Duration) -> TestServer {
    TestServer::builder()
        .with(move |builder| builder.stalled_client_timeout(stalled))
        .listening()
        .start()
        .await
}

/// Fills the server with objects that are larger than kernel buffers.
async fn fill(server: &TestServer, count: usize) {
    let text = "x".repeat(OBJECT);
    for number in 0..count {
        let mut map = config_map(&format!("large-{number:03}"));
        map["data"] = json!({"text": text});
        server.post(MAPS, &map).await.expect(201);
    }
}

/// Returns the value of a metric.
async fn metric(server: &TestServer, name: &str) -> f64 {
    let page = server.get("/metrics").await.expect(200).text();
    let line = page.lines().find(|line| line.starts_with(name)).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

async fn until(server: &TestServer, name: &str, holds: impl Fn(f64) -> bool) {
    soon(async {
        while !holds(metric(server, name).await) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

/// Sends a request on its own connection and reads only the first bytes.
async fn ask(server: &TestServer, path: &str, accept: &str) -> impl Sized + use<> {
    let mut stream = narrow(server, As::Admin, "http/1.1").await;
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut first = [0; 12];
    soon(stream.read_exact(&mut first)).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_lists_in_any_format_hold_little_memory_and_are_disconnected() {
    let server = server(PATIENCE).await;
    fill(&server, 30).await;
    let mut unread = Vec::new();
    for _ in 0..5 {
        for (path, accept) in [
            (MAPS.to_owned(), "application/json"),
            (format!("{MAPS}?pretty=true"), "application/json"),
            (MAPS.to_owned(), "application/yaml"),
            (MAPS.to_owned(), PROTOBUF),
        ] {
            unread.push(ask(&server, &path, accept).await);
        }
    }
    // In any format, each list holds an object or two.
    let held = metric(&server, "bareboat_unread_bytes").await;
    assert!(held < (unread.len() * 3 * OBJECT) as f64, "{held}");
    // Other clients get responses, and every client that does not read is disconnected.
    let mut connection = Connection::http1(&server, As::Admin).await;
    connection.send("GET", MAPS, &[], "").await.expect(200);
    drop(connection);
    until(&server, "bareboat_connections_open", |open| open == 0.0).await;
    assert_eq!(metric(&server, "bareboat_unread_bytes").await, 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_unread_lists_of_one_http2_connection_wait_for_their_client() {
    let server = server(PATIENCE).await;
    fill(&server, 20).await;
    let stream = narrow(&server, As::Admin, "h2").await;
    let (connection, ended) = Connection::over_http2(stream).await;
    let Connection::Two(sender) = connection else {
        unreachable!("it is HTTP/2");
    };
    let mut asked = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let mut sender = sender.clone();
        asked.spawn(async move {
            let uri = format!("https://localhost{MAPS}");
            let request = request("GET", &uri, &[], "").map(http_body_util::Full::new);
            // The response is kept and not read.
            sender.send_request(request).await
        });
    }
    until(&server, "bareboat_unread_bytes", |held| held > 4e6).await;
    let held = metric(&server, "bareboat_unread_bytes").await;
    assert!(held < 12e6, "{held}");
    let mut other = Connection::http2(&server, As::Admin).await;
    other.send("GET", MAPS, &[], "").await.expect(200);
    let _ = soon(ended).await;
    until(&server, "bareboat_unread_bytes", |held| held == 0.0).await;
    drop(asked);
}

#[tokio::test(flavor = "multi_thread")]
async fn stalled_watches_hold_at_most_one_event_each() {
    let server = server(NEVER).await;
    let version = server.get(MAPS).await.version();
    let mut stalled = Vec::new();
    for number in 0..20 {
        // Some start with the initial state, some with later events.
        let from = if number % 2 == 0 {
            "sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
                .to_owned()
        } else {
            format!("resourceVersion={version}")
        };
        let path = format!("{MAPS}?watch=true&{from}");
        stalled.push(ask(&server, &path, "application/json").await);
    }
    fill(&server, 30).await;
    for number in 0..20 {
        let path = format!("{MAPS}?watch=true&resourceVersion={version}&n={number}");
        stalled.push(ask(&server, &path, "application/json").await);
    }
    let held = metric(&server, "bareboat_unread_bytes").await;
    assert!(held < (stalled.len() * 2 * OBJECT) as f64, "{held}");
    // Other clients are not affected.
    let mut connection = Connection::http2(&server, As::Admin).await;
    let mut watch = connection
        .watch(&format!("{MAPS}?watch=true&resourceVersion={version}"))
        .await;
    for number in 0..30 {
        let expected = format!("ADDED large-{number:03}");
        while watch.brief().await != expected {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_reset_at_once_leave_no_state() {
    let server = server(NEVER).await;
    fill(&server, 3).await;
    let (connection, _) = Connection::over_http2(narrow(&server, As::Admin, "h2").await).await;
    let Connection::Two(sender) = connection else {
        unreachable!("it is HTTP/2");
    };
    for _ in 0..2000 {
        let mut sender = sender.clone();
        let uri = format!("https://localhost{MAPS}");
        let request = request("GET", &uri, &[], "").map(http_body_util::Full::new);
        let sent = tokio::spawn(async move { sender.send_request(request).await.map(drop) });
        tokio::task::yield_now().await;
        sent.abort();
    }
    let mut other = Connection::http2(&server, As::Admin).await;
    other.send("GET", "/livez", &[], "").await.expect(200);
    until(&server, "bareboat_unread_bytes", |held| held == 0.0).await;
    // This request itself is in flight, too.
    until(&server, "bareboat_requests_under_way", |count| count <= 1.0).await;
}

//! Streaming through subresources: endless responses, bodies forwarded while they arrive, and tunnels.

use super::*;
use crate::socket::tls;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};

async fn next(body: &mut Incoming) -> String {
    let frame = soon(body.frame()).await.expect("more").expect("a frame");
    String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()
}

/// Reads until the text ends with `end`.
pub(super) async fn until(stream: &mut (impl AsyncRead + Unpin), end: &str) -> String {
    let mut text = Vec::new();
    while !text.ends_with(end.as_bytes()) {
        let byte = soon(stream.read_u8()).await;
        let byte =
            byte.unwrap_or_else(|error| panic!("{error} after {}", String::from_utf8_lossy(&text)));
        text.push(byte);
    }
    String::from_utf8(text).unwrap()
}

#[tokio::test]
async fn an_endless_response_is_forwarded_as_it_arrives() {
    for http2 in [false, true] {
        let (server, backend) = start(Speaks::Http2(100)).await;
        let mut connection = if http2 {
            Connection::http2(&server, As::Admin).await
        } else {
            Connection::http1(&server, As::Admin).await
        };
        let path = format!("{ONE}/console?do=stream");
        let headers = [("accept-encoding", "gzip")];
        let response = connection.start("GET", &path, &headers, "").await;
        let mut body = response.into_body();
        assert_eq!(next(&mut body).await, "first\n");
        for _ in 0..3 {
            backend.go_on();
            assert_eq!(next(&mut body).await, "more\n");
        }
        // It ends when the server shuts down, and does not delay the shutdown.
        let stopping = server.stop();
        let (end, ()) = soon(async { tokio::join!(body.frame(), stopping) }).await;
        assert!(end.is_none_or(|frame| frame.is_err()));
    }
}

#[tokio::test]
async fn a_body_is_forwarded_while_it_is_sent() {
    let (server, _backend) = start(Speaks::Http1).await;
    let mut stream = tls(&server, As::Admin, "http/1.1").await;
    let head = format!(
        "POST {ONE}/start?do=mirror HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(b"3\r\none\r\n").await.unwrap();
    let answer = until(&mut stream, "one\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    for word in ["two", "six"] {
        stream
            .write_all(format!("3\r\n{word}\r\n").as_bytes())
            .await
            .unwrap();
        until(&mut stream, &format!("3\r\n{word}\r\n")).await;
    }
    stream.write_all(b"0\r\n\r\n").await.unwrap();
    until(&mut stream, "0\r\n\r\n").await;
}

#[tokio::test]
async fn responses_of_any_size_are_forwarded() {
    let (server, _backend) = start(Speaks::Http2(100)).await;
    let answer = server
        .get(&format!("{ONE}/console?do=huge"))
        .await
        .expect(200);
    assert_eq!(answer.bytes.len(), 32 << 20);
}

#[tokio::test]
async fn a_hundred_streams_do_not_block_another_request_to_the_backend() {
    // Like most HTTP/2 servers, the backend limits the streams of a connection.
    let (server, _backend) = start(Speaks::Http2(70)).await;
    let mut connection = Connection::http2(&server, As::Admin).await;
    let mut open = Vec::new();
    for _ in 0..100 {
        let path = format!("{ONE}/console?do=stream");
        let response = soon(connection.start("GET", &path, &[], "")).await;
        let mut body = response.into_body();
        assert_eq!(next(&mut body).await, "first\n");
        open.push(body);
    }
    let path = format!("{ONE}/console");
    let answer = soon(connection.send("GET", &path, &[], "")).await;
    answer.expect(200);
}

#[tokio::test]
async fn an_upgraded_connection_is_a_tunnel_that_ends_with_the_server() {
    let (server, backend) = start(Speaks::Http2(100)).await;
    let mut tunnels = Vec::new();
    for protocol in ["websocket", "SPDY/3.1"] {
        let mut stream = tls(&server, As::Nobody, "http/1.1").await;
        let head = format!(
            "GET {ONE}/console/vnc?do=upgrade HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: {protocol}\r\n\
             authorization: Bearer secret-of-jane\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let head = until(&mut stream, "\r\n\r\n").await.to_lowercase();
        assert!(head.starts_with("http/1.1 101"), "{head}");
        assert!(
            head.contains(&format!("upgrade: {}", protocol.to_lowercase())),
            "{head}"
        );
        assert!(head.contains("connection: upgrade"), "{head}");
        assert_eq!(until(&mut stream, "hello ").await, "hello ");
        for word in ["one", "two"] {
            stream.write_all(word.as_bytes()).await.unwrap();
            assert_eq!(until(&mut stream, word).await, word);
        }
        tunnels.push(stream);
    }
    assert_eq!(backend.open(), 2);
    // One side disconnects.
    let mut first = tunnels.remove(0);
    first.shutdown().await.unwrap();
    assert_eq!(soon(first.read(&mut [0; 8])).await.unwrap_or(0), 0);
    while backend.open() > 1 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    soon(server.stop()).await;
    let mut second = tunnels.remove(0);
    assert_eq!(soon(second.read(&mut [0; 8])).await.unwrap_or(0), 0);
    while backend.open() > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_rejected_upgrade_is_a_normal_response() {
    let (server, _backend) = start(Speaks::Http1).await;
    let mut stream = tls(&server, As::Admin, "http/1.1").await;
    let head = format!(
        "GET {ONE}/console?do=cookies HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = until(&mut stream, "teapot").await;
    assert!(answer.starts_with("HTTP/1.1 418"), "{answer}");
}

/// Asks another authorizer until everything is forbidden.
struct Switch(
    std::sync::Arc<dyn Authorizer>,
    std::sync::Arc<std::sync::atomic::AtomicBool>,
);

impl Authorizer for Switch {
    fn authorize<'a>(&'a self, attributes: Attributes<'a>) -> BoxFuture<'a, Decision> {
        match self.1.load(std::sync::atomic::Ordering::SeqCst) {
            true => Box::pin(std::future::ready(Decision::Deny(String::new()))),
            false => self.0.authorize(attributes),
        }
    }
}

#[tokio::test]
async fn streams_and_tunnels_end_with_the_right_to_them() {
    let (callers, builder) = builder();
    let backend = TestBackend::start(&callers, Speaks::Http2(100)).await;
    let forbidden = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let switch = forbidden.clone();
    let builder = builder.with(move |builder| {
        let switch = switch.clone();
        builder.map_authorizer(|rules| Switch(rules, switch))
    });
    let server = builder.listening().start().await;
    define(&server, &declared(&backend)).await;
    let mut connection = Connection::http1(&server, As::Nobody).await;
    let path = format!("{ONE}/console?do=stream");
    let jane = [("authorization", "Bearer secret-of-jane")];
    let response = connection.start("GET", &path, &jane, "").await;
    let mut body = response.into_body();
    assert_eq!(next(&mut body).await, "first\n");
    let mut tunnel = tls(&server, As::Nobody, "http/1.1").await;
    let head = format!(
        "GET {ONE}/console/vnc?do=upgrade HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
         authorization: Bearer secret-of-jane\r\n\r\n"
    );
    tunnel.write_all(head.as_bytes()).await.unwrap();
    until(&mut tunnel, "hello ").await;
    // Nothing changed for them.
    server.server().revocations().everything_changed();
    backend.go_on();
    assert_eq!(next(&mut body).await, "more\n");
    forbidden.store(true, std::sync::atomic::Ordering::SeqCst);
    server.server().revocations().everything_changed();
    let end = soon(body.frame()).await;
    assert!(end.is_none_or(|frame| frame.is_err()));
    assert_eq!(soon(tunnel.read(&mut [0; 8])).await.unwrap_or(0), 0);
    while backend.open() > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

//! Misused sockets: no TLS, incomplete requests, slow headers, floods.

use super::unharmed;
use crate::socket::{As, Connection, tls};
use crate::support::*;
use bareboat_testing::TestServer;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Sends bytes on a TLS connection for HTTP/1.1 and returns the whole response.
async fn say(server: &TestServer, bytes: &[u8]) -> String {
    let mut stream = tls(server, As::Admin, "http/1.1").await;
    let _ = stream.write_all(bytes).await;
    let _ = stream.flush().await;
    let _ = stream.shutdown().await;
    let mut said = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs(60), stream.read_to_end(&mut said)).await;
    String::from_utf8_lossy(&said).into_owned()
}

#[tokio::test]
async fn garbage_before_and_instead_of_tls_is_dropped() {
    let server = TestServer::listening().await;
    let hello: Vec<u8> = [&[0x16, 0x03, 0x01, 0xff, 0xff, 0x01][..], &[0xaa; 4000]].concat();
    for garbage in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        b"\0\0\0\0",
        b"\x16\x03\x01\x00\x05hello",
        &hello,
        &[0xff; 65536],
        b"SSH-2.0-x\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"",
    ] {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        let _ = stream.write_all(garbage).await;
        let _ = stream.shutdown().await;
        let mut said = Vec::new();
        let read = stream.read_to_end(&mut said);
        let ended = tokio::time::timeout(Duration::from_secs(60), read).await;
        assert!(
            ended.is_ok(),
            "the connection stays open after {} bytes of garbage",
            garbage.len()
        );
    }
    // One more connection sends nothing and stays open.
    let _silent = TcpStream::connect(server.address()).await.unwrap();
    unharmed(&server, "garbage").await;
}

#[tokio::test]
async fn broken_requests_get_400_or_are_disconnected() {
    let server = TestServer::listening().await;
    let long_line = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "x".repeat(200_000));
    let many_headers = format!(
        "GET /readyz HTTP/1.1\r\nHost: x\r\n{}\r\n",
        "X-Y: z\r\n".repeat(20_000)
    );
    let smuggled = "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /readyz HTTP/1.1\r\nHost: x\r\n\r\n";
    for text in [
        "GET\r\n\r\n",
        "GET /\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "\r\n\r\n\r\n",
        "GET  /  HTTP/1.1\r\n\r\n",
        "G\0T / HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /\0 HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : x\r\n\r\n",
        "GET / HTTP/1.1\r\n: x\r\n\r\n",
        "GET / HTTP/1.1\r\nA\0: x\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        smuggled,
        &long_line,
        &many_headers,
    ] {
        let said = say(&server, text.as_bytes()).await;
        let shown: String = text.chars().take(60).collect();
        let first = said.lines().next().unwrap_or("");
        assert!(
            first.is_empty() || first.starts_with("HTTP/1.1 4"),
            "{shown:?} was answered with {first:?}"
        );
        if text == smuggled {
            assert!(
                !said.contains("\r\n\r\nok"),
                "a request was smuggled: {said}"
            );
        }
    }
    unharmed(&server, "broken requests").await;
}

#[tokio::test]
async fn an_incomplete_request_is_dropped() {
    let server = TestServer::listening().await;
    let body = config_map("half").to_string();
    let whole = format!(
        "POST {MAPS} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    for cut in (1..whole.len()).step_by(7) {
        let mut stream = tls(&server, As::Admin, "http/1.1").await;
        stream.write_all(&whole.as_bytes()[..cut]).await.unwrap();
        stream.flush().await.unwrap();
        // Close without a shutdown.
        drop(stream);
    }
    unharmed(&server, "half requests").await;
    server.get(&format!("{MAPS}/half")).await.expect(404);
    let mut connection = Connection::http1(&server, As::Admin).await;
    connection.send("POST", MAPS, &[], body).await.expect(201);
}

#[tokio::test]
async fn slow_headers_and_stalled_bodies_delay_no_other_client() {
    let server = TestServer::listening().await;
    let mut slow = Vec::new();
    for _ in 0..50 {
        let mut stream = tls(&server, As::Admin, "http/1.1").await;
        stream
            .write_all(b"GET /readyz HTTP/1.1\r\nHost: x\r\nX-Slow: ")
            .await
            .unwrap();
        stream.flush().await.unwrap();
        slow.push(stream);
    }
    for _ in 0..50 {
        let mut stream = tls(&server, As::Admin, "http/1.1").await;
        let head = format!(
            "POST {MAPS} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        slow.push(stream);
    }
    let mut connection = Connection::http2(&server, As::Admin).await;
    for number in 0..20 {
        let body = config_map(&format!("m{number}")).to_string();
        connection.send("POST", MAPS, &[], body).await.expect(201);
    }
    // The slow connections are still open: the first can finish its request.
    let first = &mut slow[0];
    first.write_all(b"1\r\n\r\n").await.unwrap();
    first.flush().await.unwrap();
    let mut answer = [0; 12];
    soon(first.read_exact(&mut answer)).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
}

#[tokio::test]
async fn stalled_readers_delay_no_other_client() {
    let server = TestServer::listening().await;
    let mut object = config_map("big");
    object["data"]["filler"] = json!("x".repeat(900_000));
    server.post(MAPS, &object).await.expect(201);
    let (mut stalled, mut connections) = (Vec::new(), Vec::new());
    let path = format!("{MAPS}?watch=1");
    for _ in 0..10 {
        let mut connection = Connection::http2(&server, As::Admin).await;
        // Five responses per connection start and are never read; more would block each other.
        for _ in 0..5 {
            stalled.push(connection.start("GET", &path, &[], "").await);
        }
        connections.push(connection);
    }
    let mut other = Connection::http2(&server, As::Admin).await;
    for number in 0..20 {
        let patch = json!({"data": {"n": number.to_string()}}).to_string();
        let headers = [("content-type", MERGE)];
        other
            .send("PATCH", &format!("{MAPS}/big"), &headers, patch)
            .await
            .expect(200);
    }
    drop(stalled);
    unharmed(&server, "stalled readers").await;
}

#[tokio::test]
async fn cancelled_requests_leave_no_partial_writes() {
    let server = TestServer::listening().await;
    for number in 0..50 {
        let mut connection = Connection::http2(&server, As::Admin).await;
        let body = config_map(&format!("c{number}")).to_string();
        let request = connection.send("POST", MAPS, &[], body);
        let _ = tokio::time::timeout(Duration::from_micros(number * 40), request).await;
    }
    unharmed(&server, "cancelled requests").await;
    for item in server.get(MAPS).await.json()["items"].as_array().unwrap() {
        assert_eq!(item["data"], json!({"a": "b"}));
        server
            .delete(&format!("{MAPS}/{}", name(item)))
            .await
            .expect(200);
    }
}

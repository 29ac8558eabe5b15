//! What comes bit by bit: endless answers, bodies that are answered while they are sent, and tunnels.

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

/// Reads until a text ends so.
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
async fn an_endless_answer_arrives_as_it_is_said() {
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
        // It breaks off when the server ends, and does not keep it from ending.
        let stopping = server.stop();
        let (end, ()) = soon(async { tokio::join!(body.frame(), stopping) }).await;
        assert!(end.is_none_or(|frame| frame.is_err()));
    }
}

#[tokio::test]
async fn a_body_is_passed_on_while_it_is_sent() {
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
async fn answers_of_any_size_pass_through() {
    let (server, _backend) = start(Speaks::Http2(100)).await;
    let answer = server
        .get(&format!("{ONE}/console?do=huge"))
        .await
        .expect(200);
    assert_eq!(answer.bytes.len(), 32 << 20);
}

#[tokio::test]
async fn a_hundred_streams_do_not_keep_a_backend_from_answering_another() {
    // As servers of HTTP/2 do, it takes so many requests on a connection and lets others wait.
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
    // One side hangs up.
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
async fn an_answer_that_refuses_to_upgrade_is_an_answer() {
    let (server, _backend) = start(Speaks::Http1).await;
    let mut stream = tls(&server, As::Admin, "http/1.1").await;
    let head = format!(
        "GET {ONE}/console?do=cookies HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = until(&mut stream, "teapot").await;
    assert!(answer.starts_with("HTTP/1.1 418"), "{answer}");
}

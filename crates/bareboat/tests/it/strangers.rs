//! Unauthenticated connections: number, duration and request size are limited.

use crate::socket::{As, Connection, tls};
use crate::support::*;
use bareboat_testing::TestServer;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_do_not_block_clients() {
    let server = TestServer::builder()
        .with(|builder| {
            builder
                .max_unauthenticated_connections(40)
                .max_unauthenticated_connections_per_address(30)
        })
        .listening()
        .start()
        .await;
    let mut known = Connection::http2(&server, As::Admin).await;
    known.send("GET", "/api", &[], "").await.expect(200);
    let mut silent = Vec::new();
    for _ in 0..200 {
        silent.push(TcpStream::connect(server.address()).await.unwrap());
    }
    // The connections that were silent longest are closed first, after a short minimum.
    soon(async {
        loop {
            let Ok(stream) = TcpStream::connect(server.address()).await else {
                continue;
            };
            drop(stream);
            let mut ended = 0;
            for stream in &mut silent {
                let mut byte = [0];
                if matches!(stream.try_read(&mut byte), Ok(0)) {
                    ended += 1;
                }
            }
            if ended >= 170 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    for protocol in [As::Nobody, As::Admin] {
        let mut new = Connection::http1(&server, protocol).await;
        new.send("GET", "/livez", &[], "").await.expect(200);
    }
    known.send("GET", "/api", &[], "").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn beyond_the_connection_limit_only_health_is_served() {
    let server = TestServer::builder()
        .with(|builder| {
            builder
                .max_connections(8)
                .max_unauthenticated_connections(4)
        })
        .listening()
        .start()
        .await;
    let mut known = Vec::new();
    for _ in 0..4 {
        let mut connection = Connection::http1(&server, As::Admin).await;
        connection.send("GET", "/api", &[], "").await.expect(200);
        known.push(connection);
    }
    let mut fifth = Connection::http1(&server, As::Admin).await;
    fifth.send("GET", "/livez", &[], "").await.expect(200);
    let refused = fifth.send("GET", "/api", &[], "").await.expect(429);
    assert_eq!(refused.header("retry-after"), "1");
    drop(known.pop());
    soon(async {
        loop {
            let mut again = Connection::http1(&server, As::Admin).await;
            if again.send("GET", "/api", &[], "").await.code == 200 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_rejection_over_http2_ends_the_connection() {
    let server = TestServer::listening().await;
    for (path, code) in [("/api", 401), ("/livez", 200)] {
        let stream = tls(&server, As::Nobody, "h2").await;
        let (mut connection, ended) = Connection::over_http2(stream).await;
        connection.send("GET", path, &[], "").await.expect(code);
        soon(ended).await.unwrap().unwrap();
    }
    // An authenticated client keeps its connection after an error.
    let (mut connection, ended) = Connection::over_http2(tls(&server, As::Admin, "h2").await).await;
    connection
        .send("GET", "/nowhere", &[], "")
        .await
        .expect(404);
    connection.send("GET", "/livez", &[], "").await.expect(200);
    assert!(!ended.is_finished());
}

#[tokio::test]
async fn a_client_without_tls_learns_that_the_port_needs_it() {
    let server = TestServer::listening().await;
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    stream
        .write_all(b"GET /version HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert_eq!(
        answer,
        "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_are_closed() {
    // Long enough for a handshake on a busy machine.
    let while_unknown = Duration::from_secs(5);
    let while_known = Duration::from_millis(300);
    let server = TestServer::builder()
        .with(move |builder| builder.idle_connection_timeout(while_unknown, while_known))
        .listening()
        .start()
        .await;
    let mut silent = TcpStream::connect(server.address()).await.unwrap();
    let (_idle, stranger) = Connection::over_http2(tls(&server, As::Nobody, "h2").await).await;
    let (mut known, idle) = Connection::over_http2(tls(&server, As::Admin, "h2").await).await;
    known.send("GET", "/api", &[], "").await.expect(200);
    let (mut watching, busy) = Connection::over_http2(tls(&server, As::Admin, "h2").await).await;
    let version = server.get(MAPS).await.version();
    let mut watch = watching
        .watch(&format!("{MAPS}?watch=true&resourceVersion={version}"))
        .await;

    let mut byte = [0];
    assert!(matches!(soon(silent.read(&mut byte)).await, Ok(0) | Err(_)));
    let _ = soon(stranger).await;
    soon(idle).await.unwrap().unwrap();
    // A quiet watch counts as a request.
    assert!(!busy.is_finished());
    server.post(MAPS, &config_map("late")).await.expect(201);
    while watch.brief().await != "ADDED late" {}
}

#[tokio::test]
async fn large_headers_are_accepted_and_larger_ones_are_rejected() {
    let server = TestServer::listening().await;
    let head = |header: usize, count: usize| {
        let mut head = "GET /livez HTTP/1.1\r\nHost: localhost\r\n".to_owned();
        for number in 0..count {
            head += &format!("X-{number}: {}\r\n", "y".repeat(header));
        }
        head + "\r\n"
    };
    for (header, count, expected) in [
        (100, 900, "HTTP/1.1 200"),
        (900 << 10, 1, "HTTP/1.1 200"),
        (2 << 20, 1, "HTTP/1.1 431"),
        (1, 2000, "HTTP/1.1 431"),
    ] {
        let (mut reading, mut writing) =
            tokio::io::split(tls(&server, As::Admin, "http/1.1").await);
        let sent = head(header, count);
        let writer = tokio::spawn(async move {
            // The server may respond before everything is sent.
            let _ = writing.write_all(sent.as_bytes()).await;
            writing
        });
        let mut answer = [0; 12];
        soon(reading.read_exact(&mut answer)).await.unwrap();
        assert_eq!(
            String::from_utf8_lossy(&answer),
            expected,
            "{header} {count}"
        );
        drop(writer.await.unwrap());
    }
    let mut connection = Connection::http2(&server, As::Admin).await;
    // Headers far beyond the limit are not read to the end.
    for (size, expected) in [(900 << 10, 200), (1100 << 10, 431)] {
        let value = "y".repeat(size);
        let answer = connection
            .send("GET", "/livez", &[("x-large", &value)], "")
            .await;
        assert_eq!(answer.code, expected);
    }
}

//! Watches over WebSockets, read by an independent client; and HEAD over HTTP/2.

use crate::socket::{As, Connection, tls};
use crate::support::*;
use bareboat_testing::TestServer;
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::handshake::client::Response;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

type Socket = WebSocketStream<TlsStream<TcpStream>>;

async fn open(
    server: &TestServer,
    who: As,
    path: &str,
    headers: &[(&'static str, &str)],
) -> Result<(Socket, Response), Error> {
    let mut request = format!("wss://localhost{path}").into_client_request()?;
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse()?);
    }
    client_async(request, tls(server, who, "http/1.1").await).await
}

async fn watch(server: &TestServer, path: &str) -> Socket {
    let origin = [("origin", "https://localhost")];
    let (socket, response) = open(server, As::Admin, path, &origin).await.unwrap();
    assert_eq!(response.status(), 101);
    socket
}

async fn next(socket: &mut Socket) -> Message {
    soon(socket.next()).await.expect("a message").unwrap()
}

/// Returns the next event, which is one text message.
async fn event(socket: &mut Socket) -> String {
    let Message::Text(message) = next(socket).await else {
        panic!("no text");
    };
    let event: Value = serde_json::from_str(&message).expect("one event");
    format!("{} {}", text(&event["type"]), name(&event["object"]))
}

#[tokio::test]
async fn every_event_of_a_watch_is_one_text_message() {
    let server = TestServer::listening().await;
    for name in ["a", "b", "c"] {
        server.post(MAPS, &config_map(name)).await.expect(201);
    }
    let path = format!("{MAPS}?watch=true&fieldSelector=metadata.name%21%3Dkube-root-ca.crt");
    let mut socket = watch(&server, &path).await;
    for name in ["a", "b", "c"] {
        assert_eq!(event(&mut socket).await, format!("ADDED {name}"));
    }
    server.delete(&format!("{MAPS}/b")).await.expect(200);
    server.post(MAPS, &config_map("d")).await.expect(201);
    assert_eq!(event(&mut socket).await, "DELETED b");
    assert_eq!(event(&mut socket).await, "ADDED d");

    let ping = Message::Ping("x".into());
    socket.send(ping).await.unwrap();
    assert_eq!(next(&mut socket).await, Message::Pong("x".into()));

    // Other messages of a client are dropped, and its close is answered.
    socket.send(Message::text("hello")).await.unwrap();
    socket.close(None).await.unwrap();
    loop {
        match soon(socket.next()).await {
            None => break,
            Some(message) => assert!(message.unwrap().is_close()),
        }
    }
}

#[tokio::test]
async fn a_watch_that_ends_closes_the_socket_normally() {
    let server = TestServer::listening().await;
    let version = server.get("/api/v1/pods").await.version();
    let path = format!("/api/v1/pods?watch=true&resourceVersion={version}&timeoutSeconds=1");
    let mut socket = watch(&server, &path).await;
    let Message::Close(Some(frame)) = next(&mut socket).await else {
        panic!("no close");
    };
    assert_eq!(frame.code, CloseCode::Normal);
    assert!(soon(socket.next()).await.is_none());

    // A future version: an ERROR event, then the end.
    let future = "/api/v1/configmaps?watch=true&resourceVersion=999999";
    let mut socket = watch(&server, future).await;
    let Message::Text(message) = next(&mut socket).await else {
        panic!("no text");
    };
    let error: Value = serde_json::from_str(&message).unwrap();
    assert_eq!(error["type"], "ERROR");
    assert_eq!(error["object"]["code"], 410);
    assert!(next(&mut socket).await.is_close());
}

#[tokio::test]
async fn events_in_protobuf_are_binary_messages_without_a_length() {
    let server = TestServer::listening().await;
    for name in ["a", "b"] {
        server.post(MAPS, &config_map(name)).await.expect(201);
    }
    let headers = [("origin", "https://localhost"), ("accept", PROTOBUF)];
    let path = format!("{MAPS}?watch=true");
    let (mut socket, _) = open(&server, As::Admin, &path, &headers).await.unwrap();
    for name in ["a", "b"] {
        let message = next(&mut socket).await;
        assert!(message.is_binary());
        let data = message.into_data();
        assert!(data.starts_with(b"\x0a\x05ADDED"), "{data:?}");
        let text = String::from_utf8_lossy(&data).into_owned();
        assert!(text.contains(name), "{text}");
    }
}

#[tokio::test]
async fn handshakes_are_rejected_as_upstream_does() {
    let server = TestServer::listening().await;
    let path = format!("{MAPS}?watch=true");
    let refusal = async |headers: &[(&'static str, &str)]| {
        let refused = open(&server, As::Admin, &path, headers).await.err();
        match refused.expect("a refusal") {
            Error::Http(response) => {
                response.map(|body| String::from_utf8_lossy(&body.unwrap_or_default()).into_owned())
            }
            other => panic!("{other}"),
        }
    };
    let origin = ("origin", "https://localhost");
    assert_eq!(refusal(&[]).await.status(), 403);

    let old = refusal(&[origin, ("sec-websocket-version", "8")]).await;
    assert_eq!(old.status(), 400);
    assert_eq!(old.headers()["sec-websocket-version"], "13");
    assert_eq!(old.body(), "missing or bad WebSocket Version");

    let several = refusal(&[origin, ("sec-websocket-protocol", "a, b")]).await;
    assert_eq!(several.status(), 400);

    let one = [origin, ("sec-websocket-protocol", "a")];
    let (_, accepted) = open(&server, As::Admin, &path, &one).await.unwrap();
    assert_eq!(accepted.headers()["sec-websocket-protocol"], "a");

    // Errors of the watch itself are reported as for any other watch.
    let bad = format!("{MAPS}?watch=true&labelSelector=%21%21");
    let refused = open(&server, As::Admin, &bad, &[origin]).await.err();
    let Some(Error::Http(response)) = refused else {
        panic!("no answer");
    };
    assert_eq!(response.status(), 400);
}

#[tokio::test]
async fn a_token_may_be_a_subprotocol_and_is_not_repeated() {
    let server = TestServer::builder()
        .token("s3cret", "ann", &["system:masters"])
        .listening()
        .start()
        .await;
    let path = format!("{MAPS}?watch=true");
    let attempt = async |protocols: &str| {
        let headers = [
            ("origin", "https://x"),
            ("sec-websocket-protocol", protocols),
        ];
        open(&server, As::Nobody, &path, &headers).await
    };
    let token = "base64url.bearer.authorization.k8s.io.czNjcmV0";
    let (_, accepted) = attempt(&format!("{token}, watch.example")).await.unwrap();
    assert_eq!(accepted.status(), 101);
    assert_eq!(
        accepted.headers()["sec-websocket-protocol"],
        "watch.example"
    );
    for bad in [
        token.to_owned(),
        "base64url.bearer.authorization.k8s.io.d3Jvbmc, watch.example".to_owned(),
        "watch.example".to_owned(),
    ] {
        let Some(Error::Http(response)) = attempt(&bad).await.err() else {
            panic!("{bad}: no answer");
        };
        assert_eq!(response.status(), 401, "{bad}");
    }
}

#[tokio::test]
async fn a_head_response_over_http2_has_no_body() {
    let server = TestServer::listening().await;
    server.post(MAPS, &config_map("a")).await.expect(201);
    let mut connection = Connection::http2(&server, As::Admin).await;
    for path in [
        MAPS,
        "/api/v1/namespaces/default/configmaps/a",
        "/livez",
        "/version",
    ] {
        let got = connection.send("GET", path, &[], "").await.expect(200);
        let head = connection.send("HEAD", path, &[], "").await;
        // Some paths do not support HEAD, but their response has no body either.
        assert!(head.bytes.is_empty(), "{path}");
        if head.code == 200 {
            assert_eq!(head.header("content-length"), got.bytes.len().to_string());
            assert_eq!(head.header("content-type"), got.header("content-type"));
        }
    }
    connection.send("GET", "/livez", &[], "").await.expect(200);
}

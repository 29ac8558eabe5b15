//! A dropped server releases its file; one that shuts down answers the requests that clients have sent.

use crate::socket::{As, Connection, narrow, tls};
use crate::support::{MAPS, Requests as _, config_map, read};
use bareboat::api::kind::{BoxFuture, User};
use bareboat::api::{Status, Value, value};
use bareboat::controllers::{Client, Controllers};
use bareboat::server::request::info::RequestInfo;
use bareboat::server::request::query::Query;
use bareboat::server::{Annex, Body, Claim, RequestBody, Response, Stopping, Visit};
use bareboat::storage::StoreOptions;
use bareboat::{ControlPlane as _, Server, open_sqlite};
use bareboat_server::{Upstream, UpstreamTrust};
use bareboat_testing::TestServer;
use http::{HeaderMap, Method};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

fn definition() -> Value {
    value!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.example.com"},
        "spec": {
            "group": "example.com", "scope": "Cluster",
            "names": {"plural": "boats", "kind": "Boat"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": {"url": "https://127.0.0.1:1/"},
            }},
        },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_file_of_a_dropped_server_can_be_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state.db");
    for round in 0..2 {
        let begun = Instant::now();
        let store = loop {
            match open_sqlite(&file, StoreOptions::default()) {
                Ok(store) => break store,
                Err(error) => assert!(
                    round == 1 && begun.elapsed() < Duration::from_secs(300),
                    "still not closed: {error}"
                ),
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        let server = Server::builder()
            .storage(store)
            .control_plane()
            .build()
            .unwrap();
        let controllers = Controllers::start(server.clone()).await;
        let client = Client::new(server);
        if round == 0 {
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            client.create(path, &definition()).await.unwrap();
            let boat = value!({
                "apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"name": "ada"},
            });
            let boats = "/apis/example.com/v1/boats";
            client.create(boats, &boat).await.unwrap();
        } else {
            client.get("/apis/example.com/v1/boats/ada").await.unwrap();
        }
        drop(controllers);
    }
}

/// A connection whose HTTP/2 frames the test writes and reads itself.
struct Frames(TlsStream<TcpStream>);

const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
/// Of SETTINGS and PING: an acknowledgement. Of HEADERS: the end of the stream.
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

impl Frames {
    async fn write(&mut self, kind: u8, flags: u8, stream: u8, payload: &[u8]) {
        let length = u8::try_from(payload.len()).unwrap();
        let head = [0, 0, length, kind, flags, 0, 0, 0, stream];
        self.0.write_all(&head).await.unwrap();
        self.0.write_all(payload).await.unwrap();
        self.0.flush().await.unwrap();
    }

    async fn ask(&mut self, stream: u8, path: &str) {
        // GET, https, and a path as a literal.
        let length = u8::try_from(path.len()).unwrap();
        let block = [&[0x82, 0x87, 0x04, length][..], path.as_bytes()].concat();
        self.write(HEADERS, ACK | END_HEADERS, stream, &block).await;
    }

    /// Reads up to a frame of this type, and returns its payload; `None` at the end of the connection.
    async fn next(&mut self, kind: u8) -> Option<Vec<u8>> {
        loop {
            let mut head = [0; 9];
            self.0.read_exact(&mut head).await.ok()?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; length as usize];
            self.0.read_exact(&mut payload).await.ok()?;
            if head[3] == kind {
                return Some(payload);
            }
        }
    }
}

/// Asks another server.
struct Relays(Upstream);

impl Annex for Relays {
    fn claim(&self, _: &Method, info: &RequestInfo, _: &Query, _: &HeaderMap) -> Option<Claim> {
        info.path.starts_with("/relays/").then(|| Claim {
            info: info.clone(),
            authorizes: true,
            streams: false,
            judged: true,
        })
    }

    fn answer(&self, visit: Visit) -> BoxFuture<'static, Result<Response, Status>> {
        let to = self.0.clone();
        Box::pin(async move {
            if visit.request.uri().path() == "/relays/forward" {
                return visit.calls.forward(&to, "/", visit.request).await;
            }
            let request = http::Request::new(RequestBody::default());
            let sent = visit.calls.send(&to, "/", request).await;
            // Programs may answer without what another server knows.
            let found = sent.map_or(0, |answer| answer.response.status().as_u16());
            Ok(Response::new(Body::full(found.to_string())))
        })
    }
}

const POD_LOG: &str = "/api/v1/namespaces/default/pods/a/log";

#[tokio::test(flavor = "multi_thread")]
async fn what_a_shutdown_would_cut_off_is_refused_before_anything_is_sent() {
    let elsewhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let url = format!("http://{}", elsewhere.local_addr().unwrap());
    let (answers, mut answered) = tokio::sync::mpsc::channel(8);
    let server = TestServer::builder().with(move |builder| {
        let (trust, patience) = (UpstreamTrust::System, Duration::from_secs(1));
        let to = Upstream::new(&url, &trust, None, patience, &Arc::default());
        let answers = answers.clone();
        let asks = move |server: Server, stopping: Stopping| async move {
            stopping.begun().await;
            let watch = "/api/v1/pods?watch=true";
            let requests = [
                ("GET", "/version"),
                ("GET", watch),
                ("GET", POD_LOG),
                ("GET", "/relays/send"),
                ("GET", "/relays/forward"),
                // The program says that the write has happened.
                ("POST", "/relays/send"),
            ];
            for (method, path) in requests {
                let user = User {
                    name: "admin".into(),
                    groups: vec!["system:masters".into()],
                    ..User::default()
                };
                let request = http::Request::builder().method(method).uri(path);
                let request = request.body(RequestBody::default()).unwrap();
                let answer = server.call(user, request).await;
                let again = answer.headers().contains_key("retry-after");
                let _ = answers.try_send((path, answer.status().as_u16(), again));
            }
        };
        builder.annex(Arc::new(Relays(to))).task(asks)
    });
    server.listening().start().await.stop().await;
    let mut found = Vec::new();
    while let Ok(one) = answered.try_recv() {
        found.push(one);
    }
    let expected = [
        ("/version", 200, false),
        ("/api/v1/pods?watch=true", 200, false),
        (POD_LOG, 503, true),
        ("/relays/send", 503, true),
        ("/relays/forward", 503, true),
        ("/relays/send", 200, false),
    ];
    assert_eq!(found, expected);
    let called = elsewhere.accept().err().map(|error| error.kind());
    assert_eq!(called, Some(std::io::ErrorKind::WouldBlock));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_was_sent_while_its_connection_ends_is_answered() {
    let server = TestServer::builder()
        .with(|builder| builder.goodbye(Duration::from_secs(10)))
        .listening();
    let server = server.start().await;
    let mut frames = Frames(tls(&server, As::Admin, "h2").await);
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    frames.0.write_all(preface).await.unwrap();
    frames.write(SETTINGS, 0, 0, &[]).await;
    frames.ask(1, "/version").await;
    // The first byte of the headers is the status 200.
    assert_eq!(frames.next(HEADERS).await.unwrap()[0], 0x88);
    let stopping = tokio::spawn(server.stop());
    // The server announces the end. Streams that the client opens before it acknowledges that still count.
    frames.next(GOAWAY).await.unwrap();
    let ping = frames.next(PING).await.unwrap();
    frames.ask(3, "/version").await;
    assert_eq!(frames.next(HEADERS).await.unwrap()[0], 0x88);
    // A stream would be cut off at once.
    frames.ask(5, POD_LOG).await;
    // The status 503 as a new entry of the table, in Huffman's code.
    let refused = frames.next(HEADERS).await.unwrap();
    assert_eq!(refused[..5], [0x48, 0x83, 0x6c, 0x0c, 0xff]);
    frames.write(PING, ACK, 0, &ping).await;
    assert_eq!(frames.next(HEADERS).await, None);
    stopping.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_stops_after_a_long_list_was_read() {
    let server = TestServer::builder()
        .with(|builder| builder.goodbye(Duration::ZERO))
        .listening();
    let server = server.start().await;
    // More than fits into the buffers between server and client.
    let (count, text) = (24, "x".repeat(600 << 10));
    for number in 0..count {
        let mut map = config_map(&format!("large-{number:03}"));
        map["data"] = serde_json::json!({"text": text});
        server.post(MAPS, &map).await.expect(201);
    }
    let mut connection = Connection::over_http1(narrow(&server, As::Admin, "http/1.1").await).await;
    let answer = connection.start("GET", MAPS, &[], "").await;
    let stopping = tokio::spawn(server.stop());
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!stopping.is_finished(), "the list was not read");
    let list = read(answer).await.expect(200).json();
    assert_eq!(list["items"].as_array().unwrap().len(), count);
    stopping.await.unwrap();
}

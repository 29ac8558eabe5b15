//! Five users with very many streams and requests that never end, while another user works.

use crate::backend::{Ca, Speaks, TestBackend};
use crate::socket::{As, Connection, tls};
use crate::subresources::{declared, define};
use crate::support::*;
use bareboat::ClientIdentity;
use bareboat::prelude::AllowAll;
use bareboat_testing::TestServer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// No user may have more than a quarter of the requests to an upstream server.
const NOISY: [(&str, &str); 5] = [
    ("authorization", "Bearer noisy-0"),
    ("authorization", "Bearer noisy-1"),
    ("authorization", "Bearer noisy-2"),
    ("authorization", "Bearer noisy-3"),
    ("authorization", "Bearer noisy-4"),
];
const QUIET: (&str, &str) = ("authorization", "Bearer quiet-token");
const MACHINE: &str = "/apis/vms.example.com/v1/namespaces/default/machines/one";
/// Of every kind of stream.
const CONNECTIONS: usize = 9;
const STREAMS: usize = 100;

async fn start() -> (TestServer, TestBackend) {
    let callers = Ca::new();
    let (chain, key) = callers.client("front-proxy-client");
    let identity = ClientIdentity::from_pem(&chain, &key).unwrap();
    let server = TestServer::builder()
        .with(move |builder| {
            let builder = builder.client_identity(identity.clone());
            builder.authorizer(AllowAll)
        })
        .token("noisy-0", "zero", &[])
        .token("noisy-1", "one", &[])
        .token("noisy-2", "two", &[])
        .token("noisy-3", "three", &[])
        .token("noisy-4", "four", &[])
        .token("quiet-token", "quiet", &[])
        .default_flow_control()
        .listening()
        .start()
        .await;
    let backend = TestBackend::start(&callers, Speaks::Http2(10_000)).await;
    define(&server, &declared(&backend)).await;
    (server, backend)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_streams_of_some_users_do_not_affect_another_user() {
    let (server, backend) = start().await;
    let mut held = Vec::new();
    // Watches, and requests that the upstream server never answers; with the tunnels just fewer than it may have.
    let mut hanging = Vec::new();
    for number in 0..CONNECTIONS {
        let noisy = NOISY[number % NOISY.len()];
        let mut connection = Connection::http2(&server, As::Nobody).await;
        for _ in 0..STREAMS {
            let watch = format!("{MAPS}?watch=1");
            let response = soon(connection.start("GET", &watch, &[noisy], "")).await;
            assert_eq!(response.status(), 200);
            held.push(response);
        }
        let (mut connection, _) =
            Connection::over_http2(tls(&server, As::Nobody, "h2").await).await;
        hanging.push(tokio::spawn(async move {
            let path = format!("{MACHINE}/console?do=hang");
            let mut all = Vec::new();
            for _ in 0..STREAMS {
                let Connection::Two(sender) = &mut connection else {
                    unreachable!("it is HTTP/2");
                };
                let whole = format!("https://localhost{path}");
                let asked = request("GET", &whole, &[noisy], "").map(http_body_util::Full::new);
                sender.ready().await.unwrap();
                all.push(sender.send_request(asked));
            }
            futures_util::future::join_all(all).await;
        }));
    }
    // A hundred tunnels.
    let mut tunnels = Vec::new();
    for number in 0..STREAMS {
        let noisy = NOISY[number % NOISY.len()];
        let mut tunnel = tls(&server, As::Nobody, "http/1.1").await;
        let head = format!(
            "GET {MACHINE}/console?do=upgrade HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\n\
             upgrade: any\r\n{}: {}\r\n\r\n",
            noisy.0, noisy.1
        );
        tunnel.write_all(head.as_bytes()).await.unwrap();
        soon(tunnel.read_u8()).await.unwrap();
        tunnels.push(tunnel);
    }
    let waits = async {
        while backend.calls() < (CONNECTIONS + 1) * STREAMS {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    soon(waits).await;
    // Each write wakes every watch.
    let mut connection = Connection::http1(&server, As::Nobody).await;
    for number in 0..30 {
        let body = config_map(&format!("quiet-{number}")).to_string();
        let answer = soon(connection.send("POST", MAPS, &[QUIET], body)).await;
        answer.expect(201);
        let one = format!("{MAPS}/quiet-{number}");
        let answer = soon(connection.send("GET", &one, &[QUIET], "")).await;
        answer.expect(200);
        let health = soon(connection.send("GET", "/livez", &[], "")).await;
        health.expect(200);
    }
    for task in hanging {
        assert!(!task.is_finished(), "the upstream server answers nobody");
        task.abort();
    }
}

//! One stream of every kind. Each is a task that ends with its stream, and returns when.

use super::setting::{MACHINE, PODS, Pods, Setting};
use crate::socket::{Connection, connect};
use crate::support::*;
use bareboat_testing::TestServer;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::StreamExt as _;
use http_body_util::BodyExt as _;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

const BY_SUBPROTOCOL: &str = "a watch over a WebSocket with its token as a subprotocol";
/// How long a stream may take to end on any machine; a limit for failures only.
const PATIENCE: Duration = Duration::from_secs(300);
const THINGS: &str = "/apis/agg.example.com/v1/namespaces/default/things";

/// What a client shows.
pub(super) enum Credential {
    Token(String),
    /// A chain and its key.
    Certificate(String, String),
}

impl Credential {
    async fn dial(&self, server: &TestServer, protocol: &str) -> TlsStream<TcpStream> {
        let shown = match self {
            Credential::Token(_) => None,
            Credential::Certificate(chain, key) => Some((chain.as_str(), key.as_str())),
        };
        connect(server, shown, protocol).await
    }

    fn header(&self) -> Option<String> {
        match self {
            Credential::Token(token) => Some(format!("Bearer {token}")),
            Credential::Certificate(..) => None,
        }
    }
}

/// A stream that is open.
pub(super) struct Open {
    what: String,
    task: JoinHandle<Instant>,
}

impl Open {
    pub(super) fn is_finished(&self) -> bool {
        self.task.is_finished()
    }

    pub(super) fn what(&self) -> &str {
        &self.what
    }
}

impl Setting {
    /// Opens one stream of every kind, or says which one was refused.
    pub(super) async fn open(&self, who: &Credential) -> Result<Vec<Open>, String> {
        let mut open = Vec::new();
        let watch = format!("{MAPS}?watch=1");
        let mut bodies = vec![
            ("a watch", watch.clone()),
            ("a proxied answer", format!("{MACHINE}/console?do=stream")),
            ("an aggregated watch", format!("{THINGS}?watch=1&do=stream")),
            ("a log", format!("{PODS}/target/log?follow=true")),
        ];
        let console = format!("{MACHINE}/console/vnc?do=upgrade");
        let thing = format!("{THINGS}/one/console?do=upgrade");
        let mut tunnels = vec![
            ("a tunnel", console, "websocket", ""),
            ("an aggregated tunnel", thing, "websocket", ""),
            (
                "a port-forward over SPDY",
                format!("{PODS}/target/portforward"),
                "SPDY/3.1",
                "portforward.k8s.io",
            ),
        ];
        // Functions end a session whose client opens no streams after a while; kubelets decide about that themselves.
        if self.pods == Pods::Kubelet {
            let exec = format!("{PODS}/target/exec?command=a&stdout=true");
            tunnels.push(("exec over SPDY", exec, "SPDY/3.1", "v4.channel.k8s.io"));
            let node = "/api/v1/nodes/stub/proxy/x?do=".to_owned();
            bodies.push(("an answer of a node", format!("{node}stream")));
            tunnels.push(("a tunnel to a node", format!("{node}upgrade"), "any", ""));
        }
        for (what, path) in bodies {
            for protocol in ["http/1.1", "h2"] {
                open.push(self.body(what, &path, protocol, who).await?);
            }
        }
        for (what, path, protocol, streams) in tunnels {
            open.push(self.tunnel(what, &path, (protocol, streams), who).await?);
        }
        let exec = format!("{PODS}/target/exec?command=a&stdin=true&stdout=true");
        let attach = format!("{PODS}/target/attach?stdin=true&stdout=true");
        let ports = format!("{PODS}/target/portforward");
        for (what, path, protocol) in [
            ("a watch over a WebSocket", watch.clone(), ""),
            (BY_SUBPROTOCOL, watch, "channel.k8s.io"),
            ("exec over a WebSocket", exec, "v5.channel.k8s.io"),
            ("attach over a WebSocket", attach, "v5.channel.k8s.io"),
            (
                "a port-forward over a WebSocket",
                ports,
                "SPDY/3.1+portforward.k8s.io",
            ),
        ] {
            open.push(self.websocket(what, &path, protocol, who).await?);
        }
        Ok(open)
    }

    /// An answer that goes on.
    async fn body(
        &self,
        what: &str,
        path: &str,
        protocol: &str,
        who: &Credential,
    ) -> Result<Open, String> {
        let stream = who.dial(&self.server, protocol).await;
        let mut connection = match protocol {
            "h2" => Connection::over_http2(stream).await.0,
            _ => Connection::over_http1(stream).await,
        };
        let header = who.header();
        let bearer = header.as_ref().map(|it| ("authorization", it.as_str()));
        let response = connection.start("GET", path, bearer.as_slice(), "").await;
        let what = format!("{what} ({protocol})");
        if response.status() != 200 {
            let answer = read(response).await;
            return Err(format!("{what}: {} {}", answer.code, answer.text()));
        }
        // A watch ends plainly; other answers must not look complete.
        let (shown, is_plain) = (what.clone(), what.contains("watch"));
        let task = tokio::spawn(async move {
            let mut body = response.into_body();
            let end = loop {
                match body.frame().await {
                    Some(Ok(_)) => {}
                    end => break end,
                }
            };
            assert_eq!(end.is_none(), is_plain, "{shown}: {end:?}");
            drop(connection);
            Instant::now()
        });
        Ok(Open { what, task })
    }

    async fn websocket(
        &self,
        what: &str,
        path: &str,
        protocol: &str,
        who: &Credential,
    ) -> Result<Open, String> {
        let url = format!("wss://localhost{path}");
        let mut request = url.into_client_request().unwrap();
        let headers = request.headers_mut();
        headers.insert("origin", "https://localhost".parse().unwrap());
        let mut protocol = protocol.to_owned();
        match who {
            // As browsers do it.
            Credential::Token(token) if what == BY_SUBPROTOCOL => {
                let token = URL_SAFE_NO_PAD.encode(token);
                protocol = format!("base64url.bearer.authorization.k8s.io.{token}, {protocol}");
            }
            Credential::Token(token) => {
                let header = format!("Bearer {token}");
                headers.insert("authorization", header.parse().unwrap());
            }
            Credential::Certificate(..) => {}
        }
        if !protocol.is_empty() {
            headers.insert("sec-websocket-protocol", protocol.parse().unwrap());
        }
        let stream = who.dial(&self.server, "http/1.1").await;
        let (mut socket, _) = tokio_tungstenite::client_async(request, stream)
            .await
            .map_err(|error| format!("{what}: {error:?}"))?;
        let task = tokio::spawn(async move {
            while let Some(Ok(_)) = socket.next().await {}
            Instant::now()
        });
        let what = what.to_owned();
        Ok(Open { what, task })
    }

    /// A connection that is upgraded to something else.
    async fn tunnel(
        &self,
        what: &str,
        path: &str,
        (protocol, streams): (&str, &str),
        who: &Credential,
    ) -> Result<Open, String> {
        let mut tunnel = who.dial(&self.server, "http/1.1").await;
        let method = if streams.is_empty() { "GET" } else { "POST" };
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: {protocol}\r\n"
        );
        if let Some(header) = who.header() {
            head.push_str(&format!("authorization: {header}\r\n"));
        }
        if !streams.is_empty() {
            head.push_str(&format!("x-stream-protocol-version: {streams}\r\n"));
        }
        head.push_str("\r\n");
        tunnel.write_all(head.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            let byte = soon(tunnel.read_u8()).await;
            answer.push(byte.map_err(|error| format!("{what}: {error}"))?);
        }
        if !answer.starts_with(b"HTTP/1.1 101") {
            return Err(format!("{what}: {}", String::from_utf8_lossy(&answer)));
        }
        let task = tokio::spawn(async move {
            let mut bytes = [0; 64];
            while tunnel.read(&mut bytes).await.unwrap_or(0) > 0 {}
            Instant::now()
        });
        let what = what.to_owned();
        Ok(Open { what, task })
    }
}

/// Waits for the end of streams; returns the longest time one took after an instant.
pub(super) async fn longest(open: Vec<Open>, since: Instant) -> (String, Duration) {
    let mut worst = (String::new(), Duration::ZERO);
    for Open { what, task } in open {
        let ended = tokio::time::timeout(PATIENCE, task).await;
        let ended = ended.unwrap_or_else(|_| panic!("{what} does not end"));
        let took = ended.unwrap().saturating_duration_since(since);
        if took >= worst.1 {
            worst = (what, took);
        }
    }
    worst
}

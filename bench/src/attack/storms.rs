//! Storms: very many requests or streams of one user at once. The row `storms` runs them as an ordinary user.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::kinds::{get, press};
use crate::credentials::{Access, trusting};
use crate::http1::{self, Connection};

/// The namespace in which storms write.
pub(crate) const NAMESPACE: &str = "storms";
/// Kind whose second version a webhook converts that never answers.
pub(crate) const CONVERTED: &str = "converteds";
/// Connections of a storm of requests.
const CLIENTS: usize = 64;
/// Requests that wait for another server.
const WAITING: usize = 400;
const SLOW_BODIES: usize = 400;
const TUNNELS: usize = 1_000;
const LARGE_BYTES: usize = 3 << 20;

/// Opens watches with all initial events, reads a little of each and leaves.
pub(super) async fn watches(access: &Access) -> Result<()> {
    let path = "/api/v1/configmaps?watch=true&sendInitialEvents=true\
        &resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let request = get(access, path, "application/json");
    everyone(CLIENTS, async || {
        if let Ok(mut stream) = http1::dial(&access.authority, &access.tls).await
            && stream.write_all(&request).await.is_ok()
        {
            // A refused or ended watch is an answer, too.
            let _ = stream.read(&mut [0; 4096]).await;
        }
    })
    .await
}

/// Sends bodies of 3 MiB, which are parsed and then refused because no object may be so large.
pub(super) async fn large_writes(access: &Access) -> Result<()> {
    let map = json!({"metadata": {"generateName": "large-"}, "data": {"value": "x".repeat(LARGE_BYTES - 1_000)}});
    let path = format!("/api/v1/namespaces/{NAMESPACE}/configmaps");
    let body = map.to_string();
    let request = http1::request(access, "POST", &path, "application/json", body.as_bytes());
    press(access, &request, CLIENTS).await
}

/// Sends one byte of each body ten times a second.
pub(super) async fn slow_bodies(access: &Access) -> Result<()> {
    let head = head(
        access,
        "POST",
        &format!("/api/v1/namespaces/{NAMESPACE}/configmaps"),
    );
    let request =
        format!("{head}Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{{");
    hold(access, request.as_bytes(), SLOW_BODIES, b" ").await
}

/// Shows tokens with a wrong signature, each another one.
pub(super) async fn bad_tokens(access: &Access) -> Result<()> {
    let path = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let asked =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
            .to_string();
    let mut connection = Connection::open(access, 16 * 1024).await?;
    let request = http1::request(access, "POST", path, "application/json", asked.as_bytes());
    let answer = connection.fetch(&request).await?;
    let issued: Value = serde_json::from_slice(&answer.body)?;
    let token = issued["status"]["token"].as_str();
    let token = token.with_context(|| format!("no token: status {}", answer.status))?;
    let (signed, signature) = token.rsplit_once('.').context("a token has a signature")?;
    let number = std::sync::atomic::AtomicUsize::new(0);
    let tls = trusting()?;
    everyone(CLIENTS, async || {
        let number = number.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let stranger = Access {
            token: Some(format!("{signed}.{number:08}{}", &signature[8..])),
            tls: std::sync::Arc::clone(&tls),
            ..access.clone()
        };
        let request = http1::request(&stranger, "GET", "/api/v1/nodes", "", b"");
        if let Ok(mut connection) = Connection::open(&stranger, 16 * 1024).await {
            // A rejection is expected.
            let _ = connection.send(&request).await;
        }
    })
    .await
}

/// Creates secrets, which a webhook reviews that never answers.
pub(super) async fn hanging_webhook(access: &Access) -> Result<()> {
    let secret = json!({"metadata": {"generateName": "hangs-"}}).to_string();
    let path = format!("/api/v1/namespaces/{NAMESPACE}/secrets");
    let request = http1::request(access, "POST", &path, "application/json", secret.as_bytes());
    press(access, &request, WAITING).await
}

/// Lists objects that a webhook converts that never answers.
pub(super) async fn hanging_converter(access: &Access) -> Result<()> {
    let path = format!("/apis/attack.example/v2/{CONVERTED}");
    let request = get(access, &path, "application/json");
    press(access, &request, WAITING).await
}

/// Opens tunnels to an aggregated server, and sends one byte through each of them ten times a second.
pub(super) async fn tunnels(access: &Access) -> Result<()> {
    let path = "/apis/g000.aggregated.example/v1/namespaces/default/things/thing/tunnel";
    let head = head(access, "GET", path);
    let request = format!("{head}Connection: Upgrade\r\nUpgrade: bytes\r\n\r\n");
    hold(access, request.as_bytes(), TUNNELS, b"x").await
}

/// Repeats some work of each client.
async fn everyone(clients: usize, work: impl AsyncFn()) -> Result<()> {
    let forever = async || {
        loop {
            work().await;
        }
    };
    futures_util::future::join_all((0..clients).map(|_| forever())).await;
    Ok(())
}

/// Sends one request on many connections, and then a byte on each ten times a second. Those that end are opened again.
async fn hold(access: &Access, request: &[u8], count: usize, byte: &[u8]) -> Result<()> {
    let mut held: Vec<TlsStream<TcpStream>> = Vec::new();
    loop {
        for _ in held.len()..count {
            let Ok(mut stream) = http1::dial(&access.authority, &access.tls).await else {
                break;
            };
            if stream.write_all(request).await.is_ok() {
                held.push(stream);
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        let mut open = Vec::with_capacity(held.len());
        for mut stream in held {
            if stream.write_all(byte).await.is_ok() && stream.flush().await.is_ok() {
                open.push(stream);
            }
        }
        held = open;
    }
}

/// The first lines of a request: without the empty line that ends them.
fn head(access: &Access, method: &str, path: &str) -> String {
    let token = access.token.as_deref().unwrap_or_default();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n",
        access.authority
    )
}

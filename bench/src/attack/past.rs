//! Attacks on what the server knows of the past: old versions and continue tokens.
//!
//! The attacker is another process. It finds the version to attack by a config map that is made just before the history
//! is written, and never changes.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};

use super::kinds::{Attack, GROUP, LARGE, LARGE_BYTES, LARGE_OBJECTS, SILENT, SMALL, fill, get};
use crate::bench::{Bench, CRDS, namespace};
use crate::credentials::Access;
use crate::http1::{self, Connection};
use crate::load::Load;

const MERGE_PATCH: &str = "application/merge-patch+json";
/// The config maps whose versions are the beginning of a history.
const MARKS: &str = "/api/v1/namespaces/default/configmaps";
/// Events since the version of exact lists.
const EVENTS: usize = 30_000;
/// How often all large objects are changed: 80 MiB, more than the events that a server keeps in memory.
const ROUNDS: usize = 4;
const PAGED: &str = "/api/v1/namespaces/attack-paged/configmaps";
/// Objects behind continue tokens: 40 MiB.
const PAGED_OBJECTS: usize = 80;
const TOKENS: usize = 60;

/// Writes the history that an attack needs.
pub(super) async fn prepare(attack: Attack, bench: &Bench<'_>) -> Result<()> {
    match attack {
        Attack::ExactLists => {
            mark(bench, SMALL).await?;
            change(bench, SMALL, bench.args.scaled(EVENTS), 100).await
        }
        Attack::PastLists | Attack::ResumedWatches => {
            mark(bench, LARGE).await?;
            change(bench, LARGE, ROUNDS * LARGE_OBJECTS, LARGE_OBJECTS).await
        }
        Attack::ContinueTokens => {
            bench
                .post("/api/v1/namespaces", namespace("attack-paged"))
                .await?;
            fill(bench, PAGED, PAGED_OBJECTS, LARGE_BYTES).await
        }
        Attack::SilentConverter => silent_converter(bench).await,
        _ => Ok(()),
    }
}

/// Returns the name of the mark of a collection.
fn mark_of(collection: &str) -> String {
    let namespace = collection.split('/').nth(4).unwrap_or_default();
    format!("before-{namespace}")
}

/// Creates the mark of a collection anew.
async fn mark(bench: &Bench<'_>, collection: &str) -> Result<()> {
    let name = mark_of(collection);
    bench.ask("DELETE", &format!("{MARKS}/{name}"), b"").await?;
    bench.post(MARKS, json!({"metadata": {"name": name}})).await
}

/// Changes so many objects of a collection, in turn, so often.
async fn change(bench: &Bench<'_>, collection: &str, times: usize, objects: usize) -> Result<()> {
    let load = Load {
        operations: times,
        limit: Duration::from_secs(300),
        ..bench.load(16, times)
    };
    let request = |at: usize| patch(&bench.server.access, collection, at % objects, at);
    load.run(&bench.server, request).await?;
    Ok(())
}

/// Returns the request that changes one object a little.
fn patch(access: &Access, collection: &str, object: usize, round: usize) -> Vec<u8> {
    let path = format!("{collection}/filled-{object:06}");
    let body = json!({"data": {"round": round.to_string()}}).to_string();
    http1::request(access, "PATCH", &path, MERGE_PATCH, body.as_bytes())
}

/// Returns the version of a collection's mark.
async fn marked(access: &Access, collection: &str) -> Result<String> {
    let mut connection = Connection::open(access, 64 * 1024).await?;
    let path = format!("{MARKS}/{}", mark_of(collection));
    let answer = connection
        .fetch(&get(access, &path, "application/json"))
        .await?;
    let mark: Value = serde_json::from_slice(&answer.body)?;
    let version = mark["metadata"]["resourceVersion"].as_str();
    Ok(version
        .context("the mark has a resourceVersion")?
        .to_owned())
}

/// Returns the request of a list at the version of the mark.
pub(super) async fn exact_list(access: &Access, path: &str) -> Result<Vec<u8>> {
    let (collection, query) = path.split_once('?').unwrap_or((path, ""));
    let version = marked(access, collection).await?;
    let path = format!("{collection}?resourceVersionMatch=Exact&resourceVersion={version}&{query}");
    let request = get(access, &path, "application/json");
    must_be_answered(access, &request).await?;
    Ok(request)
}

/// Returns the request of a watch from the version of the mark.
pub(super) async fn resumed_watch(access: &Access, collection: &str) -> Result<Vec<u8>> {
    let version = marked(access, collection).await?;
    let path = format!("{collection}?watch=true&resourceVersion={version}");
    let request = get(access, &path, "application/json");
    let events = Connection::open(access, 64 * 1024)
        .await?
        .watch(&request)
        .await;
    events.context("the watch is not resumed")?.next().await?;
    Ok(request)
}

/// Fails unless a request is accepted: the server must still have the history that is attacked.
async fn must_be_answered(access: &Access, request: &[u8]) -> Result<()> {
    let mut connection = Connection::open(access, 256 * 1024).await?;
    let answer = connection.send(request).await?;
    if ![200, 429].contains(&answer.status) {
        bail!(
            "status {}: {}",
            answer.status,
            String::from_utf8_lossy(&answer.body)
        );
    }
    Ok(())
}

/// Gets tokens, and changes some objects after each of them, so that each keeps another state; then uses the tokens.
pub(super) async fn continue_tokens(access: &Access) -> Result<()> {
    let page = get(access, &format!("{PAGED}?limit=1"), "application/json");
    let mut tokens = Vec::new();
    for round in 0..TOKENS {
        let mut connection = Connection::open(access, 256 * 1024).await?;
        let answer = connection.fetch(&page).await?;
        let list: Value = serde_json::from_slice(&answer.body)?;
        // A refusal has none.
        if let Some(token) = list["metadata"]["continue"].as_str() {
            tokens.push(token.to_owned());
        }
        change_some(access, round).await?;
    }
    loop {
        for token in &tokens {
            let next = get(
                access,
                &format!("{PAGED}?limit=1&continue={token}"),
                "application/json",
            );
            let mut connection = Connection::open(access, 256 * 1024).await?;
            connection.send(&next).await?;
        }
    }
}

/// Changes the next quarter of the objects behind the tokens. Each token then keeps 10 MiB that no other one has.
async fn change_some(access: &Access, round: usize) -> Result<()> {
    const WRITERS: usize = 5;
    const EACH: usize = PAGED_OBJECTS / 4 / WRITERS;
    let writer = async |writer: usize| -> Result<()> {
        let mut connection = Connection::open(access, 64 * 1024).await?;
        for at in 0..EACH {
            let object = (round * WRITERS + writer) * EACH + at;
            let request = patch(access, PAGED, object % PAGED_OBJECTS, round);
            connection.send(&request).await?;
        }
        Ok(())
    };
    futures_util::future::try_join_all((0..WRITERS).map(writer)).await?;
    Ok(())
}

/// Creates a kind of two versions, whose converter accepts connections and says nothing.
async fn silent_converter(bench: &Bench<'_>) -> Result<()> {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("https://{}/convert", silent.local_addr()?);
    tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok(call) = silent.accept().await {
            held.push(call);
        }
    });
    // No handshake ever completes, but a definition needs an authority that can be read.
    let key = KeyPair::generate()?;
    let authority = CertificateParams::new(["127.0.0.1".to_owned()])?.self_signed(&key)?;
    let client = json!({"url": url, "caBundle": BASE64.encode(authority.pem())});
    let version = |name: &str, storage: bool| {
        json!({
            "name": name, "served": true, "storage": storage,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
        })
    };
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{SILENT}.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Cluster",
            "names": {"plural": SILENT, "singular": "silent", "kind": "Silent"},
            "versions": [version("v1", true), version("v2", false)],
            "conversion": {
                "strategy": "Webhook",
                "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]},
            },
        },
    });
    bench.post(CRDS, definition).await?;
    bench.established(&format!("{SILENT}.{GROUP}")).await?;
    let one =
        json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Silent", "metadata": {"name": "one"}});
    let path = format!("/apis/{GROUP}/v1/{SILENT}");
    for _ in 0..100 {
        let answer = bench.ask("POST", &path, one.to_string().as_bytes()).await?;
        if answer.status == 201 {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    bail!("{path} is not served")
}

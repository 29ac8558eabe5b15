//! Streams that an authorization webhook decides about are judged side by side, and a webhook that could not review one
//! is asked once more.

use super::authorizers::{configuration, hook};
use super::peer::{Peer, Reply};
use super::revocation::{ends, is_alive, watch};
use crate::support::*;
use bareboat::server::authz::ConfiguredAuthorizer;
use bareboat_testing::TestServer;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;

/// How many streams wait for a slow answer.
const SLOW: usize = 5;

/// A server that asks a webhook about everybody.
async fn server(peer: &Peer) -> TestServer {
    let made = Arc::new(Mutex::new(None));
    let keep = made.clone();
    let server = TestServer::builder()
        .token("a", "ann", &[])
        .token("b", "bob", &[])
        .with(move |builder| {
            builder.map_authorizer(|rbac| {
                let configured = ConfiguredAuthorizer::new(rbac);
                *keep.lock().unwrap() = Some(configured.clone());
                configured
            })
        })
        .listening()
        .start()
        .await;
    let file = peer.kubeconfig("/authorize");
    let patient = json!({
        "cacheAuthorizedRequests": false, "cacheUnauthorizedRequests": false, "timeout": "30s",
    });
    let wanted = configuration(json!([hook(&file, patient)]));
    let authorizer = made.lock().unwrap().clone().unwrap();
    authorizer.replace(wanted).unwrap();
    server
}

fn allowed() -> Reply {
    Reply::json(json!({"status": {"allowed": true}}))
}

fn denied() -> Reply {
    Reply::json(json!({"status": {"denied": true}}))
}

/// How often the webhook was asked about a user.
fn asked(peer: &Peer, user: &str) -> usize {
    let calls = peer.calls();
    let about = |call: &&(String, Value)| call.1["spec"]["user"] == user;
    calls.iter().filter(about).count()
}

#[tokio::test]
async fn a_slow_webhook_delays_no_other_stream() {
    let peer = Peer::start(|_, _| allowed()).await;
    let server = server(&peer).await;
    let mut slow = Vec::new();
    for _ in 0..SLOW {
        slow.push(watch(&server, "a", &[]).await);
    }
    let bob = watch(&server, "b", &[]).await;
    let before = asked(&peer, "ann");
    let gate = Arc::new(Semaphore::new(0));
    let closed = gate.clone();
    peer.rewrite(move |_, review| match text(&review["spec"]["user"]) {
        "ann" => allowed().after(&closed),
        "bob" => denied(),
        _ => allowed(),
    });
    server.server().revocations().everything_changed();
    until(|| asked(&peer, "ann") == before + SLOW).await;
    ends(bob).await;
    gate.close();
    for (number, stream) in slow.iter_mut().enumerate() {
        is_alive(&server, stream, &format!("map-{number}")).await;
    }
}

#[tokio::test]
async fn a_stream_stays_if_its_webhook_failed_once() {
    let peer = Peer::start(|_, _| allowed()).await;
    let server = server(&peer).await;
    let mut ann = watch(&server, "a", &[]).await;
    let before = asked(&peer, "ann");
    let failures = AtomicUsize::new(0);
    peer.rewrite(move |_, review| match text(&review["spec"]["user"]) {
        "ann" if failures.fetch_add(1, Ordering::SeqCst) == 0 => Reply::code(500, "sorry"),
        _ => allowed(),
    });
    server.server().revocations().everything_changed();
    until(|| asked(&peer, "ann") == before + 2).await;
    is_alive(&server, &mut ann, "one").await;
    // Twice is once too often.
    peer.rewrite(|_, review| match text(&review["spec"]["user"]) {
        "ann" => Reply::code(500, "sorry"),
        _ => allowed(),
    });
    server.server().revocations().everything_changed();
    ends(ann).await;
    assert_eq!(asked(&peer, "ann"), before + 4);
}

#[tokio::test]
async fn a_refusal_is_final() {
    let peer = Peer::start(|_, _| allowed()).await;
    let server = server(&peer).await;
    let ann = watch(&server, "a", &[]).await;
    let before = asked(&peer, "ann");
    peer.rewrite(|_, review| match text(&review["spec"]["user"]) {
        "ann" => denied(),
        _ => allowed(),
    });
    server.server().revocations().everything_changed();
    ends(ann).await;
    assert_eq!(asked(&peer, "ann"), before + 1);
}

async fn until(what: impl Fn() -> bool) {
    soon(async {
        while !what() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
}

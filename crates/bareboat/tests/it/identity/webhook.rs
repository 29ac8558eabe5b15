//! Webhook token review.

use super::holder;
use super::peer::{Peer, Reply};
use crate::socket::{As, Connection};
use crate::support::*;
use bareboat::RemoteApi;
use bareboat::server::authn::WebhookTokens;
use bareboat_testing::TestServer;
use std::sync::{Arc, Mutex};
use std::time::Duration;

async fn server(peer: &Peer, ttl: Duration) -> TestServer {
    let file = peer.kubeconfig("/review");
    let remote = RemoteApi::from_kubeconfig(file.path()).unwrap();
    let webhook = WebhookTokens::new(remote, &["api".to_owned()]).cache_ttl(ttl);
    let webhook = Arc::new(Mutex::new(Some(webhook)));
    TestServer::builder()
        .with(move |builder| match webhook.lock().unwrap().take() {
            Some(webhook) => builder.authenticator(webhook),
            None => builder,
        })
        .default_roles()
        .listening()
        .start()
        .await
}

fn accepting(_: &str, review: &Value) -> Reply {
    let token = text(&review["spec"]["token"]);
    let Some(name) = token.strip_prefix("token-of-") else {
        return Reply::json(json!({"status": {"authenticated": false}}));
    };
    Reply::json(json!({"status": {
        "authenticated": true,
        "user": {"username": name, "uid": "7", "groups": ["dev"], "extra": {"a.example/b": ["c"]}},
        "audiences": ["api"],
    }}))
}

#[tokio::test]
async fn the_webhook_names_users_and_is_asked_once() {
    let peer = Peer::start(accepting).await;
    let server = server(&peer, Duration::from_secs(3600)).await;
    let mut connection = Connection::http1(&server, As::Nobody).await;
    for _ in 0..5 {
        let user = holder(&mut connection, "token-of-ann").await.unwrap();
        assert_eq!(user["username"], "ann");
        assert_eq!(user["groups"], json!(["dev", "system:authenticated"]));
        assert_eq!(user["extra"], json!({"a.example/b": ["c"]}));
    }
    let calls = peer.calls();
    assert_eq!(calls.len(), 1);
    let (path, review) = &calls[0];
    assert_eq!(path, "/review");
    assert_eq!(review["kind"], "TokenReview");
    assert_eq!(review["apiVersion"], "authentication.k8s.io/v1");
    assert_eq!(
        review["spec"],
        json!({"token": "token-of-ann", "audiences": ["api"]})
    );
    // Refusals are not remembered.
    for _ in 0..2 {
        assert_eq!(holder(&mut connection, "stolen").await, Err(401));
    }
    assert_eq!(peer.calls().len(), 3);
}

#[tokio::test]
async fn without_a_time_nothing_is_remembered() {
    let peer = Peer::start(accepting).await;
    let server = server(&peer, Duration::ZERO).await;
    let mut connection = Connection::http1(&server, As::Nobody).await;
    assert!(holder(&mut connection, "token-of-ann").await.is_ok());
    peer.rewrite(|_, _| Reply::json(json!({"status": {"authenticated": false}})));
    assert_eq!(holder(&mut connection, "token-of-ann").await, Err(401));
}

#[tokio::test]
async fn answers_that_make_no_sense_let_nobody_in() {
    let elsewhere = Peer::start(accepting).await;
    let peer = Peer::start(accepting).await;
    let server = server(&peer, Duration::ZERO).await;
    let mut connection = Connection::http1(&server, As::Nobody).await;
    let user = |more: Value| {
        let mut status = json!({"authenticated": true, "user": {"username": "ann"}});
        for (key, value) in more.as_object().unwrap() {
            status[key] = value.clone();
        }
        json!({"status": status})
    };
    peer.rewrite({
        let good = user(json!({}));
        move |_, _| Reply::json(good.clone())
    });
    assert!(holder(&mut connection, "x").await.is_ok());
    let answers = [
        user(json!({"audiences": ["other"]})),
        user(json!({"user": {}})),
        user(json!({"authenticated": "true"})),
        json!({}),
        json!([]),
    ];
    for answer in answers {
        let shown = answer.to_string();
        peer.rewrite(move |_, _| Reply::json(answer.clone()));
        assert_eq!(holder(&mut connection, "x").await, Err(401), "{shown}");
    }
    for code in [301, 302, 303, 307, 308] {
        let target = format!("{}/review", elsewhere.url);
        peer.rewrite(move |_, _| Reply::redirect(code, &target));
        assert_eq!(
            holder(&mut connection, "token-of-ann").await,
            Err(401),
            "{code}"
        );
    }
    assert_eq!(elsewhere.calls().len(), 0);
    for body in ["nonsense".to_owned(), " ".repeat(3 << 20)] {
        peer.rewrite(move |_, _| Reply::code(200, body.clone()));
        assert_eq!(holder(&mut connection, "x").await, Err(401));
    }
    peer.rewrite(|_, _| Reply::code(500, "token-of-ann is secret"));
    assert_eq!(holder(&mut connection, "x").await, Err(401));
}

//! Tokens of JWT issuers, with an issuer whose keys rotate and which goes away.

use super::peer::{Peer, Reply};
use super::{holder, now};
use crate::socket::{As, Connection};
use crate::support::*;
use bareboat::server::authn::{AuthenticationConfiguration, JwtIssuers};
use bareboat_testing::TestServer;
use bareboat_tokens::{SigningKey, sign};
use std::sync::atomic::{AtomicUsize, Ordering};

fn key() -> SigningKey {
    SigningKey::from_pem(&rcgen::KeyPair::generate().unwrap().serialize_pem()).unwrap()
}

/// The value of the server for a JSON value of the tests.
fn value(json: &Value) -> bareboat::api::Value {
    bareboat_wire::json::parse(json.to_string().as_bytes())
        .unwrap()
        .value
}

/// What an issuer with these keys answers.
fn documents(
    url: &str,
    keys: &[&SigningKey],
) -> impl Fn(&str, &Value) -> Reply + Send + Sync + 'static {
    let document = json!({"issuer": url, "jwks_uri": format!("{url}/keys")});
    let keys: Vec<Value> = keys
        .iter()
        .map(|key| serde_json::from_slice(&key.public().to_value().to_json()).unwrap())
        .collect();
    let keys = json!({"keys": keys});
    move |path, _| match path {
        "/.well-known/openid-configuration" => Reply::json(document.clone()),
        "/keys" => Reply::json(keys.clone()),
        _ => Reply::code(404, ""),
    }
}

async fn issuer(keys: &[&SigningKey]) -> Peer {
    let peer = Peer::start(|_, _| Reply::code(503, "")).await;
    peer.rewrite(documents(&peer.url, keys));
    peer
}

fn configuration(peers: &[&Peer]) -> AuthenticationConfiguration {
    let jwt: Vec<Value> = peers
        .iter()
        .map(|peer| {
            json!({
                "issuer": {"url": peer.url, "certificateAuthority": peer.ca, "audiences": ["tests"]},
                "claimMappings": {
                    "username": {"claim": "sub", "prefix": "oidc:"},
                    "groups": {"expression": "claims.?groups.orValue([])"},
                },
            })
        })
        .collect();
    let file = json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": jwt,
    });
    AuthenticationConfiguration::parse(&file.to_string(), &[]).unwrap()
}

async fn server(peers: &[&Peer]) -> (TestServer, JwtIssuers) {
    let issuers = JwtIssuers::new(&["api".to_owned()]);
    issuers.replace(configuration(peers).issuers);
    let installed = issuers.clone();
    let server = TestServer::builder()
        .with(move |builder| builder.authenticator(installed.clone()))
        .default_roles()
        .listening()
        .start()
        .await;
    (server, issuers)
}

fn claims(peer: &Peer, more: Value) -> Value {
    let mut claims = json!({"iss": peer.url, "aud": "tests", "sub": "ann", "exp": now() + 600});
    for (key, value) in more.as_object().unwrap() {
        claims[key] = value.clone();
    }
    claims
}

fn token(peer: &Peer, key: &SigningKey, more: Value) -> String {
    sign(key, &value(&claims(peer, more))).unwrap()
}

#[tokio::test]
async fn tokens_of_two_issuers_name_their_users() {
    let keys = (key(), key());
    let peers = (issuer(&[&keys.0]).await, issuer(&[&keys.1]).await);
    let (server, _) = server(&[&peers.0, &peers.1]).await;
    let mut connection = Connection::http1(&server, As::Nobody).await;
    let ann = token(&peers.0, &keys.0, json!({"groups": ["dev"]}));
    let user = holder(&mut connection, &ann).await.unwrap();
    assert_eq!(user["username"], "oidc:ann");
    assert_eq!(user["groups"], json!(["dev", "system:authenticated"]));
    let bob = token(&peers.1, &keys.1, json!({"sub": "bob"}));
    assert_eq!(
        holder(&mut connection, &bob).await.unwrap()["username"],
        "oidc:bob"
    );
    // The key of one issuer is nothing to the other.
    let crossed = token(&peers.0, &keys.1, json!({}));
    assert_eq!(holder(&mut connection, &crossed).await, Err(401));
    let review = json!({"spec": {"token": ann, "audiences": ["api", "other"]}});
    let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
    let status = server.post(reviews, &review).await.expect(201).json()["status"].clone();
    assert_eq!(status["authenticated"], true, "{status}");
    assert_eq!(status["audiences"], json!(["api"]));
    let review = json!({"spec": {"token": ann, "audiences": ["other"]}});
    let status = server.post(reviews, &review).await.expect(201).json()["status"].clone();
    assert_eq!(status["authenticated"], Value::Null, "{status}");
}

#[tokio::test]
async fn keys_rotate_and_stay_good_while_the_issuer_is_down() {
    let (old, new) = (key(), key());
    let peer = issuer(&[&old]).await;
    let (server, _) = server(&[&peer]).await;
    let mut connection = Connection::http2(&server, As::Admin).await;
    let mut connection2 = Connection::http1(&server, As::Nobody).await;
    drop(connection.send("GET", "/version", &[], "").await);
    let first = token(&peer, &old, json!({}));
    assert!(holder(&mut connection2, &first).await.is_ok());
    peer.rewrite(documents(&peer.url, &[&new]));
    let second = token(&peer, &new, json!({}));
    assert!(holder(&mut connection2, &second).await.is_ok());
    // The key that is no longer published is no longer good, also on this connection.
    assert_eq!(holder(&mut connection2, &first).await, Err(401));
    peer.rewrite(|_, _| Reply::code(500, "down"));
    assert!(holder(&mut connection2, &second).await.is_ok());
    let other = token(&peer, &new, json!({"sub": "bob"}));
    assert!(holder(&mut connection2, &other).await.is_ok());
}

#[tokio::test]
async fn unknown_keys_are_no_way_to_make_the_server_call() {
    let known = key();
    let peer = issuer(&[&known]).await;
    let (server, _) = server(&[&peer]).await;
    let mut connection = Connection::http1(&server, As::Nobody).await;
    assert!(
        holder(&mut connection, &token(&peer, &known, json!({})))
            .await
            .is_ok()
    );
    for _ in 0..100 {
        let stranger = token(&peer, &key(), json!({}));
        assert_eq!(holder(&mut connection, &stranger).await, Err(401));
    }
    // Two documents for each fetch: at the start, and a few more.
    let calls = peer.calls().len();
    assert!(calls <= 2 * (1 + 3 + 2), "{calls} calls");
}

#[tokio::test]
async fn forged_tokens_are_refused() {
    use base64::Engine as _;
    let encode = |text: &str| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text);
    let known = key();
    let peer = issuer(&[&known]).await;
    let (server, _) = server(&[&peer]).await;
    let mut connection = Connection::http1(&server, As::Nobody).await;
    let good = token(&peer, &known, json!({}));
    assert!(holder(&mut connection, &good).await.is_ok());
    let body = encode(&claims(&peer, json!({})).to_string());
    let (head, signature) = good.rsplit_once('.').unwrap();
    let id = known.public().id();
    let twice = claims(&peer, json!({})).to_string();
    let twice = encode(&format!("{},\"sub\":\"root\"}}", &twice[..twice.len() - 1]));
    let header = |header: Value| encode(&header.to_string());
    let mut forged = vec![
        format!("{}.{body}.", header(json!({"alg": "none"}))),
        format!(
            "{}.{body}.{signature}",
            header(json!({"alg": "none", "kid": id}))
        ),
        format!(
            "{}.{body}.{signature}",
            header(json!({"alg": "HS256", "kid": id}))
        ),
        format!(
            "{}.{body}.{signature}",
            header(json!({"alg": "RS256", "kid": id}))
        ),
        format!(
            "{}.{body}.{signature}",
            header(json!({"alg": "ES256", "kid": "../../keys"}))
        ),
        format!(
            "{}.{body}.{signature}",
            header(json!({"alg": "ES256", "kid": id, "crit": ["x"]}))
        ),
        format!(
            "{}.{twice}.{signature}",
            header(json!({"alg": "ES256", "kid": id}))
        ),
        format!("{head}.{}", &signature[..signature.len() - 6]),
        format!("{head}."),
        head.to_owned(),
        ".".repeat(15 * 1024),
        "x".repeat(200 * 1024),
    ];
    let refused = [
        json!({"aud": "other"}),
        json!({"exp": now() - 10}),
        json!({"nbf": now() + 3600}),
        json!({"iss": "https://other.example"}),
        json!({"sub": ""}),
        json!({"groups": ["system:masters"]}),
    ];
    forged.extend(refused.map(|more| token(&peer, &known, more)));
    for token in &forged {
        let shown = &token[..token.len().min(200)];
        assert_eq!(holder(&mut connection, token).await, Err(401), "{shown}");
    }
    let huge = token_of_size(&peer, &known);
    assert_eq!(holder(&mut connection, &huge).await, Err(401));
    assert!(holder(&mut connection, &good).await.is_ok());
}

/// A token that is signed well, and longer than any that is looked at.
fn token_of_size(peer: &Peer, key: &SigningKey) -> String {
    let short = token(peer, key, json!({}));
    format!("{short}{}", "A".repeat(20_000))
}

#[tokio::test]
async fn redirects_foreign_documents_and_huge_answers_give_no_keys() {
    let known = key();
    let evil = issuer(&[&known]).await;
    let peer = issuer(&[&known]).await;
    let (url, count) = (evil.url.clone(), AtomicUsize::new(0));
    let own = peer.url.clone();
    peer.rewrite(move |path, _| {
        let turn = count.fetch_add(1, Ordering::SeqCst);
        match turn % 4 {
            0 => Reply::redirect(302, &format!("{url}{path}")),
            1 => Reply::redirect(308, &format!("{url}{path}")),
            2 => Reply::json(json!({"issuer": url, "jwks_uri": format!("{own}/keys")})),
            _ => Reply::code(200, vec![b' '; 2 << 20]),
        }
    });
    let (server, _) = server(&[&peer]).await;
    let mut connection = Connection::http1(&server, As::Nobody).await;
    for _ in 0..4 {
        let token = token(&peer, &known, json!({}));
        assert_eq!(holder(&mut connection, &token).await, Err(401));
    }
    assert_eq!(evil.calls().len(), 0);
}

#[tokio::test]
async fn another_configuration_counts_from_the_next_request_on() {
    let keys = (key(), key());
    let peers = (issuer(&[&keys.0]).await, issuer(&[&keys.1]).await);
    let (server, issuers) = server(&[&peers.0]).await;
    let mut connection = Connection::http1(&server, As::Nobody).await;
    let first = token(&peers.0, &keys.0, json!({}));
    let second = token(&peers.1, &keys.1, json!({}));
    assert!(holder(&mut connection, &first).await.is_ok());
    assert_eq!(holder(&mut connection, &second).await, Err(401));
    issuers.replace(configuration(&[&peers.1]).issuers);
    assert_eq!(holder(&mut connection, &first).await, Err(401));
    assert!(holder(&mut connection, &second).await.is_ok());
    let calls = peers.1.calls().len();
    issuers.replace(configuration(&[&peers.1]).issuers);
    assert!(holder(&mut connection, &second).await.is_ok());
    assert_eq!(peers.1.calls().len(), calls, "known keys are kept");
}

#[tokio::test]
async fn a_watch_ends_when_its_token_expires() {
    let known = key();
    let peer = issuer(&[&known]).await;
    let (server, _) = server(&[&peer]).await;
    super::revocation::allow(&server, "oidc:ann").await;
    let path = format!("{MAPS}?watch=1");
    // A machine that is slow may take longer than a short life to begin the watch.
    for life in [4, 16, 64, 256] {
        let mut connection = Connection::http1(&server, As::Nobody).await;
        let token = token(&peer, &known, json!({"exp": now() + life}));
        let header = [("authorization", &*format!("Bearer {token}"))];
        let response = connection.start("GET", &path, &header, "").await;
        if response.status() == 200 {
            let events = soon(Watching::new(response).rest()).await;
            assert!(
                events.iter().all(|event| event["type"] != "ERROR"),
                "{events:?}"
            );
            return;
        }
    }
    panic!("no watch began before its token expired");
}

//! Secrets for tokens: filled, and removed with their account, with exactly the role of the controller.

use crate::fixture::{Fixture, builder};
use bareboat::control_plane::ControlPlane as _;
use bareboat::service_accounts::{ServiceAccounts, TokenSettings};
use bareboat_api::{Object, Value, value};
use bareboat_controllers::Options;
use bareboat_server::Server;
use bareboat_tokens::{Jws, SigningKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::sync::Arc;

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";

fn options(ca: &str, accounts: &ServiceAccounts) -> Options {
    Options {
        root_ca: Some(ca.to_owned()),
        secret_tokens: Some(Arc::new(accounts.clone())),
        ..Options::default()
    }
}

fn accounts(key: &str) -> ServiceAccounts {
    ServiceAccounts::new(key, &[], TokenSettings::default()).unwrap()
}

async fn account(fixture: &Fixture) -> Object {
    let account =
        value!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}});
    fixture.create(ACCOUNTS, account).await
}

async fn secret(fixture: &Fixture, name: &str) -> String {
    let secret = value!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {"name": name, "annotations": {"kubernetes.io/service-account.name": "robot"}},
    });
    fixture.create(SECRETS, secret).await;
    format!("{SECRETS}/{name}")
}

fn held(secret: &Object, key: &str) -> String {
    let text = secret.at(&["data", key]).and_then(Value::as_str);
    let bytes = STANDARD.decode(text.unwrap_or("")).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_gets_a_token_the_certificates_and_its_namespace() {
    let key = rcgen::KeyPair::generate().unwrap().serialize_pem();
    let accounts = accounts(&key);
    let server = builder(|_| {}).build().unwrap();
    let fixture = Fixture::over(server, options("CA", &accounts)).await;
    let robot = account(&fixture).await;
    let path = secret(&fixture, "held").await;
    fixture
        .until_it(&path, |it| !held(it, "token").is_empty())
        .await;
    let first = fixture.get(&path).await.unwrap();
    assert_eq!(held(&first, "ca.crt"), "CA");
    assert_eq!(held(&first, "namespace"), "default");
    let uid = first.annotation("kubernetes.io/service-account.uid");
    assert_eq!(uid, Some(robot.uid()));
    let token = held(&first, "token");
    let public = SigningKey::from_pem(&key).unwrap().public().clone();
    let claims = Jws::parse(&token).unwrap().verify([&public]).unwrap();
    for (claim, expected) in [
        ("iss", "kubernetes/serviceaccount"),
        ("sub", "system:serviceaccount:default:robot"),
        ("kubernetes.io/serviceaccount/namespace", "default"),
        ("kubernetes.io/serviceaccount/secret.name", "held"),
        ("kubernetes.io/serviceaccount/service-account.name", "robot"),
        (
            "kubernetes.io/serviceaccount/service-account.uid",
            robot.uid(),
        ),
    ] {
        let found = claims.get(claim).and_then(Value::as_str);
        assert_eq!(found, Some(expected), "{claim}");
    }
    // A token that is taken out is replaced.
    let none = value!({"data": {"token": null}});
    fixture.client.merge(&path, &none).await.unwrap();
    fixture
        .until_it(&path, |it| !held(it, "token").is_empty())
        .await;
    let token = held(&fixture.get(&path).await.unwrap(), "token");
    // Other certificates are written at the next start; the token stays.
    let fixture = fixture.restarted(options("CA 2", &accounts)).await;
    fixture
        .until_it(&path, |it| held(it, "ca.crt") == "CA 2")
        .await;
    assert_eq!(held(&fixture.get(&path).await.unwrap(), "token"), token);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_ends_with_its_account() {
    let key = rcgen::KeyPair::generate().unwrap().serialize_pem();
    let accounts = accounts(&key);
    let server = builder(|_| {}).build().unwrap();
    let fixture = Fixture::over(server, options("CA", &accounts)).await;
    account(&fixture).await;
    let path = secret(&fixture, "held").await;
    let opaque = value!({"apiVersion": "v1", "kind": "Secret", "metadata": {
        "name": "opaque", "annotations": {"kubernetes.io/service-account.name": "robot"}}});
    fixture.create(SECRETS, opaque).await;
    fixture
        .until_it(&path, |it| !held(it, "token").is_empty())
        .await;
    fixture
        .delete(&format!("{ACCOUNTS}/robot"), "Background")
        .await;
    fixture.until_gone(&path).await;
    let orphan = secret(&fixture, "orphan").await;
    fixture.until_gone(&orphan).await;
    assert!(fixture.exists(&format!("{SECRETS}/opaque")).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_day_of_the_last_use_is_a_label() {
    let key = rcgen::KeyPair::generate().unwrap().serialize_pem();
    let accounts = accounts(&key);
    let server = accounts.install(Server::builder().control_plane());
    let server = server.build().unwrap();
    let fixture = Fixture::over(server, options("CA", &accounts)).await;
    account(&fixture).await;
    let path = secret(&fixture, "held").await;
    fixture
        .until_it(&path, |it| !held(it, "token").is_empty())
        .await;
    let unused = fixture.get(&path).await.unwrap();
    let label = "kubernetes.io/legacy-token-last-used";
    assert_eq!(unused.label(label), None);
    let review = value!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
        "spec": {"token": (held(&unused, "token"))},
    });
    let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
    let answer = fixture.client.create(reviews, &review).await.unwrap();
    let user = answer.at(&["status", "user", "username"]);
    assert_eq!(
        user.and_then(Value::as_str),
        Some("system:serviceaccount:default:robot")
    );
    fixture
        .until_it(&path, |it| {
            let day = it.label(label).unwrap_or("");
            day.len() == "2026-01-01".len()
        })
        .await;
}

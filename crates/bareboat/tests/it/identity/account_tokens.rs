//! Forged, outdated and misplaced tokens of service accounts, each on a fresh and on an open connection; and tokens
//! that secrets hold.

use super::{holder, now};
use crate::socket::{As, Connection};
use crate::support::*;
use bareboat::service_accounts::{DEFAULT_ISSUER, ServiceAccounts, TokenSettings};
use bareboat_testing::TestServer;
use bareboat_tokens::{SigningKey, sign};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";

struct Setting {
    server: TestServer,
    accounts: ServiceAccounts,
    pem: String,
    key: SigningKey,
    uid: String,
}

impl Setting {
    async fn new() -> Setting {
        let pem = rcgen::KeyPair::generate().unwrap().serialize_pem();
        let accounts = ServiceAccounts::new(&pem, &[], TokenSettings::default()).unwrap();
        let installed = accounts.clone();
        let server = TestServer::builder()
            .with(move |builder| installed.install(builder))
            .default_roles()
            .listening()
            .start()
            .await;
        let robot = json!({"metadata": {"name": "robot"}});
        let robot = server.post(ACCOUNTS, &robot).await.expect(201).json();
        Setting {
            accounts,
            key: SigningKey::from_pem(&pem).unwrap(),
            pem,
            uid: text(&robot["metadata"]["uid"]).to_owned(),
            server,
        }
    }

    fn claims(&self, more: Value) -> Value {
        let mut claims = json!({
            "iss": DEFAULT_ISSUER, "aud": [DEFAULT_ISSUER], "jti": "1",
            "iat": now(), "nbf": now(), "exp": now() + 600,
            "sub": "system:serviceaccount:default:robot",
            "kubernetes.io": {"namespace": "default", "serviceaccount": {"name": "robot", "uid": self.uid}},
        });
        for (key, value) in more.as_object().unwrap() {
            claims[key] = value.clone();
        }
        claims
    }

    /// A token that the server's key signs, with other claims.
    fn token(&self, more: Value) -> String {
        sign(&self.key, &value(&self.claims(more))).unwrap()
    }

    async fn issued(&self, spec: Value) -> String {
        let path = format!("{ACCOUNTS}/robot/token");
        let answer = self.server.post(&path, &json!({"spec": spec})).await;
        text(&answer.expect(201).json()["status"]["token"]).to_owned()
    }
}

fn value(json: &Value) -> bareboat::api::Value {
    let parsed = bareboat_wire::json::parse(json.to_string().as_bytes());
    parsed.unwrap().value
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// HMAC of SHA-256, as an attacker computes it with a public key for its secret.
fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut block = [0u8; 64];
    match key.len() > 64 {
        true => block[..32].copy_from_slice(&Sha256::digest(key)),
        false => block[..key.len()].copy_from_slice(key),
    }
    let pad = |with: u8| block.map(|byte| byte ^ with);
    let inner = Sha256::new_with_prefix(pad(0x36)).chain_update(message);
    let outer = Sha256::new_with_prefix(pad(0x5c)).chain_update(inner.finalize());
    outer.finalize().to_vec()
}

/// A token is refused, on an open connection and on a new one.
async fn refused(setting: &Setting, open: &mut Connection, what: &str, token: &str) {
    assert_eq!(holder(open, token).await, Err(401), "{what}");
    let mut fresh = Connection::http1(&setting.server, As::Nobody).await;
    assert_eq!(holder(&mut fresh, token).await, Err(401), "{what}");
}

async fn accepted(setting: &Setting, open: &mut Connection, what: &str, token: &str) {
    let mut fresh = Connection::http1(&setting.server, As::Nobody).await;
    for connection in [open, &mut fresh] {
        let user = holder(connection, token).await;
        let user = user.unwrap_or_else(|code| panic!("{what}: {code}"));
        assert_eq!(user["username"], "system:serviceaccount:default:robot");
    }
}

#[tokio::test]
async fn forged_and_outdated_tokens_are_refused() {
    let setting = Setting::new().await;
    let mut open = Connection::http1(&setting.server, As::Nobody).await;
    let good = setting.token(json!({}));
    accepted(&setting, &mut open, "the server's own", &good).await;
    let (head, signature) = good.rsplit_once('.').unwrap();
    let body = head.split_once('.').unwrap().1;
    let id = setting.key.public().id().to_owned();
    let header = |more: Value| encode(more.to_string());
    let mut forged = vec![
        (
            "no algorithm",
            format!("{}.{body}.", header(json!({"alg": "none"}))),
        ),
        (
            "None",
            format!("{}.{body}.", header(json!({"alg": "None", "kid": id}))),
        ),
        (
            "a signature cut short",
            format!("{head}.{}", &signature[..signature.len() - 4]),
        ),
        ("no signature", format!("{head}.")),
        ("two parts", head.to_owned()),
        ("four parts", format!("{good}.x")),
        ("a changed claim", {
            let claims = setting.claims(json!({"sub": "system:serviceaccount:kube-system:robot"}));
            let first = head.split_once('.').unwrap().0;
            format!("{first}.{}.{signature}", encode(claims.to_string()))
        }),
        ("dots", ".".repeat(15 * 1024)),
        ("a large token", format!("{good}{}", "A".repeat(600 << 10))),
    ];
    for algorithm in ["RS256", "PS256", "ES384", "HS256", "EdDSA", "es256"] {
        let other = header(json!({"alg": algorithm, "kid": id}));
        forged.push((
            "the algorithm of another key",
            format!("{other}.{body}.{signature}"),
        ));
    }
    for kid in ["../../../../dev/null", "' OR 1=1 --", "", "\u{0}"] {
        let other = format!("{}.{body}", header(json!({"alg": "ES256", "kid": kid})));
        forged.push(("the key of another name", format!("{other}.{signature}")));
    }
    for extra in ["crit", "jku", "x5u"] {
        let other =
            header(json!({"alg": "ES256", "kid": "other", extra: ["https://localhost:1/"]}));
        forged.push((
            "a key from elsewhere",
            format!("{other}.{body}.{signature}"),
        ));
    }
    // The public key as the secret of an HMAC, in each form it is published in.
    let published = setting.server.get("/openid/v1/jwks").await.expect(200);
    let jwk = published.json()["keys"][0].to_string();
    let der = rcgen::KeyPair::from_pem(&setting.pem).unwrap();
    let der = rcgen::PublicKeyData::subject_public_key_info(&der);
    let pem = format!(
        "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
        STANDARD.encode(&der)
    );
    for secret in [jwk.as_bytes(), &der, pem.as_bytes(), &published.bytes] {
        let message = format!("{}.{body}", header(json!({"alg": "HS256", "kid": id})));
        let signature = encode(hmac(secret, message.as_bytes()));
        forged.push(("an HMAC", format!("{message}.{signature}")));
    }
    // Signed well, by a key that is not the server's.
    let other = SigningKey::from_pem(&rcgen::KeyPair::generate().unwrap().serialize_pem()).unwrap();
    let claims = value(&setting.claims(json!({})));
    forged.push(("another key", sign(&other, &claims).unwrap()));
    for (what, token) in &forged {
        refused(&setting, &mut open, what, token).await;
    }
    // Signed well by the server's key.
    let account = |name: &str, uid: &str| json!({"kubernetes.io": {"namespace": "default", "serviceaccount": {"name": name, "uid": uid}}});
    for (what, more) in [
        ("another audience", json!({"aud": ["vault"]})),
        ("expired", json!({"exp": now() - 61})),
        ("no end", json!({"exp": null})),
        ("an end that is no number", json!({"exp": "never"})),
        ("not yet valid", json!({"nbf": now() + 300})),
        ("issued in the future", json!({"iat": now() + 300})),
        ("another issuer", json!({"iss": "https://example.com"})),
        (
            "another uid",
            account("robot", "00000000-0000-4000-8000-000000000000"),
        ),
        ("another name", account("default", &setting.uid)),
        (
            "another subject",
            json!({"sub": "system:serviceaccount:kube-system:default"}),
        ),
        ("no account", json!({"kubernetes.io": null})),
        (
            "a legacy token without a secret",
            json!({"iss": "kubernetes/serviceaccount"}),
        ),
        ("bound to a secret that is missing", {
            let mut claims = account("robot", &setting.uid);
            claims["kubernetes.io"]["secret"] = json!({"name": "x", "uid": "y"});
            claims
        }),
    ] {
        refused(&setting, &mut open, what, &setting.token(more)).await;
    }
    // Claims larger than any that is looked at; nothing signs them, and no signature is checked.
    let claims = setting.claims(json!({"more": "A".repeat(600 << 10)}));
    let first = head.split_once('.').unwrap().0;
    let large = format!("{first}.{}.{signature}", encode(claims.to_string()));
    refused(&setting, &mut open, "a large claim", &large).await;
    // Clocks may differ by a minute.
    let late = setting.token(json!({"exp": now() - 30}));
    accepted(&setting, &mut open, "a clock that is late", &late).await;
    accepted(&setting, &mut open, "the same as before", &good).await;
}

#[tokio::test]
async fn a_claim_that_is_there_twice_is_refused() {
    let setting = Setting::new().await;
    let mut open = Connection::http1(&setting.server, As::Nobody).await;
    // The key of the server signs only what it wrote, so this needs a signature over other bytes.
    let key = rcgen::KeyPair::from_pem(&setting.pem).unwrap();
    let plain = setting.claims(json!({})).to_string();
    let head = encode(json!({"alg": "ES256", "kid": setting.key.public().id()}).to_string());
    let sign = |claims: &str| {
        let message = format!("{head}.{}", encode(claims));
        let signature = rcgen::SigningKey::sign(&key, message.as_bytes()).unwrap();
        format!("{message}.{}", encode(raw(&signature)))
    };
    accepted(&setting, &mut open, "once", &sign(&plain)).await;
    for twice in [
        "\"exp\":99999999999",
        "\"sub\":\"system:serviceaccount:default:robot\"",
        "\"aud\":[]",
    ] {
        let claims = format!("{},{twice}}}", &plain[..plain.len() - 1]);
        refused(&setting, &mut open, twice, &sign(&claims)).await;
    }
}

/// An ECDSA signature as JSON Web Signatures have it: two numbers of 32 bytes instead of DER.
fn raw(der: &[u8]) -> Vec<u8> {
    let mut rest = &der[2..];
    let mut out = Vec::new();
    for _ in 0..2 {
        let length = usize::from(rest[1]);
        let number = &rest[2..2 + length];
        let number = match number.len() {
            33.. => &number[number.len() - 32..],
            _ => number,
        };
        out.extend(std::iter::repeat_n(0, 32 - number.len()));
        out.extend(number);
        rest = &rest[2 + length..];
    }
    out
}

#[tokio::test]
async fn a_token_ends_with_what_it_depends_on() {
    let setting = Setting::new().await;
    let server = &setting.server;
    let mut open = Connection::http1(server, As::Nobody).await;
    let objects = [
        ("Secret", SECRETS, json!({"metadata": {"name": "x"}})),
        ("Node", "/api/v1/nodes", json!({"metadata": {"name": "x"}})),
        (
            "Pod",
            "/api/v1/namespaces/default/pods",
            json!({"metadata": {"name": "x"}, "spec": {
                "serviceAccountName": "robot", "containers": [{"name": "a", "image": "b"}]}}),
        ),
    ];
    for (kind, path, object) in &objects {
        server.post(path, object).await.expect(201);
        let bound = json!({"boundObjectRef": {"apiVersion": "v1", "kind": kind, "name": "x"}});
        let token = setting.issued(bound).await;
        accepted(&setting, &mut open, kind, &token).await;
        let one = format!("{path}/x?gracePeriodSeconds=0");
        server.delete(&one).await.expect(200);
        refused(&setting, &mut open, kind, &token).await;
        // Another object of the same name is another object.
        server.post(path, object).await.expect(201);
        refused(&setting, &mut open, kind, &token).await;
    }
    let token = setting.issued(json!({})).await;
    let other = rcgen::KeyPair::generate().unwrap().serialize_pem();
    let both = [setting.pem.clone()];
    setting.accounts.replace_keys(&other, &both).unwrap();
    accepted(&setting, &mut open, "a key that only verifies", &token).await;
    setting.accounts.replace_keys(&other, &[]).unwrap();
    refused(&setting, &mut open, "a key that is gone", &token).await;
    setting.accounts.replace_keys(&setting.pem, &[]).unwrap();
    accepted(&setting, &mut open, "the key again", &token).await;
    let one = format!("{ACCOUNTS}/robot");
    server.delete(&one).await.expect(200);
    refused(&setting, &mut open, "a deleted account", &token).await;
    let again = json!({"metadata": {"name": "robot"}});
    server.post(ACCOUNTS, &again).await.expect(201);
    refused(&setting, &mut open, "an account made anew", &token).await;
}

#[tokio::test]
async fn a_token_of_a_secret_is_good_while_the_secret_holds_it() {
    let setting = Setting::new().await;
    let server = &setting.server;
    let mut open = Connection::http1(server, As::Nobody).await;
    let legacy = |uid: &str, secret: &str| {
        let claims = json!({
            "iss": "kubernetes/serviceaccount",
            "sub": "system:serviceaccount:default:robot",
            "kubernetes.io/serviceaccount/namespace": "default",
            "kubernetes.io/serviceaccount/secret.name": secret,
            "kubernetes.io/serviceaccount/service-account.name": "robot",
            "kubernetes.io/serviceaccount/service-account.uid": uid,
        });
        sign(&setting.key, &value(&claims)).unwrap()
    };
    let token = legacy(&setting.uid, "held");
    refused(&setting, &mut open, "before the secret", &token).await;
    let secret = json!({
        "metadata": {"name": "held", "annotations": {
            "kubernetes.io/service-account.name": "robot", "kubernetes.io/service-account.uid": setting.uid}},
        "type": "kubernetes.io/service-account-token",
        "data": {"token": STANDARD.encode(&token)},
    });
    server.post(SECRETS, &secret).await.expect(201);
    accepted(&setting, &mut open, "held", &token).await;
    // It is for this server only.
    let review = json!({"spec": {"token": token, "audiences": ["vault"]}});
    let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
    let status = server.post(reviews, &review).await.expect(201).json()["status"].clone();
    assert_eq!(status["authenticated"], Value::Null, "{status}");
    refused(
        &setting,
        &mut open,
        "another secret",
        &legacy(&setting.uid, "other"),
    )
    .await;
    refused(&setting, &mut open, "another uid", &legacy("x", "held")).await;
    let one = format!("{SECRETS}/held");
    let label = |value: Value| json!({"metadata": {"labels": {"kubernetes.io/legacy-token-invalid-since": value}}});
    server
        .patch(&one, MERGE, &label(json!("2026-01-01")))
        .await
        .expect(200);
    refused(&setting, &mut open, "marked as invalid", &token).await;
    server
        .patch(&one, MERGE, &label(Value::Null))
        .await
        .expect(200);
    accepted(&setting, &mut open, "no longer marked", &token).await;
    let other = json!({"data": {"token": STANDARD.encode("other")}});
    server.patch(&one, MERGE, &other).await.expect(200);
    refused(&setting, &mut open, "replaced in its secret", &token).await;
    server
        .patch(
            &one,
            MERGE,
            &json!({"data": {"token": STANDARD.encode(&token)}}),
        )
        .await
        .expect(200);
    accepted(&setting, &mut open, "held again", &token).await;
    server.delete(&one).await.expect(200);
    refused(&setting, &mut open, "a deleted secret", &token).await;
}

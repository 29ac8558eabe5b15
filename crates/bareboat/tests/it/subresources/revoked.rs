//! Every kind of stream ends within two seconds of whatever ends the right to it, and no other stream does.

use super::streams::until;
use super::*;
use crate::socket::tls;
use bareboat::service_accounts::{DEFAULT_ISSUER, ServiceAccounts, TokenSettings};
use bareboat_tokens::SigningKey;
use futures_util::StreamExt as _;
use http_body_util::BodyExt as _;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
const LIMIT: Duration = Duration::from_secs(2);

struct Setting {
    server: TestServer,
    _backend: TestBackend,
    accounts: ServiceAccounts,
    pem: String,
}

async fn setting() -> Setting {
    let pem = rcgen::KeyPair::generate().unwrap().serialize_pem();
    let accounts = ServiceAccounts::new(&pem, &[], TokenSettings::default()).unwrap();
    let callers = Ca::new();
    let (chain, key) = callers.client("front-proxy-client");
    let identity = ClientIdentity::from_pem(&chain, &key).unwrap();
    let installed = accounts.clone();
    let server = TestServer::builder()
        .with(move |builder| {
            let builder = builder.client_identity(identity.clone());
            installed.install(builder)
        })
        .listening()
        .start()
        .await;
    let backend = TestBackend::start(&callers, Speaks::Http2(100)).await;
    define(&server, &declared(&backend)).await;
    Setting {
        server,
        _backend: backend,
        accounts,
        pem,
    }
}

fn rules() -> Value {
    json!([
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["watch"]},
        {"apiGroups": ["vms.example.com"], "resources": ["machines/console"], "verbs": ["get"]},
    ])
}

impl Setting {
    /// Makes an account with the rights to all streams, and everything its tokens may depend on.
    async fn account(&self, name: &str) {
        let server = &self.server;
        let account = json!({"metadata": {"name": name}});
        server.post(ACCOUNTS, &account).await.expect(201);
        let role = json!({"metadata": {"name": name}, "rules": rules()});
        server.post(ROLES, &role).await.expect(201);
        let binding = json!({
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": name}],
        });
        server.post(BINDINGS, &binding).await.expect(201);
        let pod = json!({"metadata": {"name": name}, "spec": {
            "serviceAccountName": name, "containers": [{"name": "a", "image": "b"}]}});
        for (path, object) in [
            ("/api/v1/namespaces/default/pods", pod),
            ("/api/v1/namespaces/default/secrets", account.clone()),
            ("/api/v1/nodes", account.clone()),
        ] {
            server.post(path, &object).await.expect(201);
        }
    }

    async fn token(&self, account: &str, spec: Value) -> String {
        let path = format!("{ACCOUNTS}/{account}/token");
        let answer = self.server.post(&path, &json!({"spec": spec})).await;
        text(&answer.expect(201).json()["status"]["token"]).to_owned()
    }

    /// A token that the server accepts for a few more seconds.
    async fn short_token(&self, account: &str, life: i64) -> String {
        let path = format!("{ACCOUNTS}/{account}");
        let uid = self.server.get(&path).await.json()["metadata"]["uid"].clone();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let now = now.as_secs() as i64;
        // Clocks may differ by a minute, which the server adds.
        let claims = json!({
            "iss": DEFAULT_ISSUER, "aud": [DEFAULT_ISSUER], "iat": now - 600, "nbf": now - 600,
            "exp": now - 60 + life, "sub": format!("system:serviceaccount:default:{account}"),
            "kubernetes.io": {"namespace": "default", "serviceaccount": {"name": account, "uid": uid}},
        });
        let claims = bareboat_wire::json::parse(claims.to_string().as_bytes()).unwrap();
        let key = SigningKey::from_pem(&self.pem).unwrap();
        bareboat_tokens::sign(&key, &claims.value).unwrap()
    }

    /// One stream of every kind; each task ends with its stream, and returns when.
    async fn open(&self, token: &str) -> Option<Vec<(&'static str, JoinHandle<Instant>)>> {
        let server = &self.server;
        let header = format!("Bearer {token}");
        let bearer = [("authorization", header.as_str())];
        let mut open = Vec::new();
        let watch = format!("{MAPS}?watch=1");
        let console = format!("{ONE}/console?do=stream");
        for (what, path, http2) in [
            ("a watch over HTTP/1.1", &watch, false),
            ("a watch over HTTP/2", &watch, true),
            ("a proxied answer over HTTP/1.1", &console, false),
            ("a proxied answer over HTTP/2", &console, true),
        ] {
            let mut connection = match http2 {
                true => Connection::http2(server, As::Nobody).await,
                false => Connection::http1(server, As::Nobody).await,
            };
            let response = connection.start("GET", path, &bearer, "").await;
            if response.status() != 200 {
                return None;
            }
            let is_watch = path == &watch;
            open.push((
                what,
                tokio::spawn(async move {
                    let mut body = response.into_body();
                    loop {
                        match body.frame().await {
                            Some(Ok(_)) => {}
                            // A watch ends plainly; a proxied answer must not look complete.
                            end => {
                                assert_eq!(end.is_none(), is_watch, "{what}: {end:?}");
                                break;
                            }
                        }
                    }
                    drop(connection);
                    Instant::now()
                }),
            ));
        }
        let mut request = format!("wss://localhost{watch}")
            .into_client_request()
            .unwrap();
        let headers = request.headers_mut();
        headers.insert("origin", "https://localhost".parse().unwrap());
        headers.insert("authorization", header.parse().unwrap());
        let stream = tls(server, As::Nobody, "http/1.1").await;
        let (mut socket, _) = tokio_tungstenite::client_async(request, stream)
            .await
            .ok()?;
        open.push((
            "a watch over a WebSocket",
            tokio::spawn(async move {
                while let Some(Ok(_)) = socket.next().await {}
                Instant::now()
            }),
        ));
        let mut tunnel = tls(server, As::Nobody, "http/1.1").await;
        let head = format!(
            "GET {ONE}/console/vnc?do=upgrade HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\n\
             upgrade: websocket\r\nauthorization: {header}\r\n\r\n"
        );
        tunnel.write_all(head.as_bytes()).await.unwrap();
        if !until(&mut tunnel, "\r\n\r\n")
            .await
            .starts_with("HTTP/1.1 101")
        {
            return None;
        }
        open.push((
            "a tunnel",
            tokio::spawn(async move {
                let mut bytes = [0; 64];
                while tunnel.read(&mut bytes).await.unwrap_or(0) > 0 {}
                Instant::now()
            }),
        ));
        Some(open)
    }
}

/// Waits for the end of streams; returns the longest time one took after an instant.
async fn longest(
    open: Vec<(&'static str, JoinHandle<Instant>)>,
    since: Instant,
) -> (&'static str, Duration) {
    let mut worst = ("", Duration::ZERO);
    for (what, task) in open {
        let took = soon(task).await.unwrap().saturating_duration_since(since);
        if took >= worst.1 {
            worst = (what, took);
        }
    }
    worst
}

/// What ends the rights of an account.
#[derive(Clone, Copy, Debug)]
enum Cause {
    Role,
    Binding,
    Account,
    Pod,
    Secret,
    Node,
    Keys,
}

impl Cause {
    /// The spec of a token that depends on it.
    fn spec(self, name: &str) -> Value {
        let kind = match self {
            Cause::Pod => "Pod",
            Cause::Secret => "Secret",
            Cause::Node => "Node",
            _ => return json!({}),
        };
        json!({"boundObjectRef": {"apiVersion": "v1", "kind": kind, "name": name}})
    }

    async fn happens(self, setting: &Setting, name: &str) {
        let server = &setting.server;
        let path = match self {
            Cause::Role => {
                let path = format!("{ROLES}/{name}");
                let none = json!({"rules": []});
                server.patch(&path, MERGE, &none).await.expect(200);
                return;
            }
            Cause::Keys => {
                let other = rcgen::KeyPair::generate().unwrap().serialize_pem();
                setting.accounts.replace_keys(&other, &[]).unwrap();
                return;
            }
            Cause::Binding => format!("{BINDINGS}/{name}"),
            Cause::Account => format!("{ACCOUNTS}/{name}"),
            Cause::Pod => format!("/api/v1/namespaces/default/pods/{name}?gracePeriodSeconds=0"),
            Cause::Secret => format!("/api/v1/namespaces/default/secrets/{name}"),
            Cause::Node => format!("/api/v1/nodes/{name}"),
        };
        server.delete(&path).await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_stream_ends_within_two_seconds_of_every_cause() {
    let setting = setting().await;
    setting.account("other").await;
    let other = setting.token("other", json!({})).await;
    let others = setting
        .open(&other)
        .await
        .expect("streams of another account");
    for cause in [
        Cause::Role,
        Cause::Binding,
        Cause::Pod,
        Cause::Secret,
        Cause::Node,
        Cause::Account,
        Cause::Keys,
    ] {
        let keys = matches!(cause, Cause::Keys);
        if keys {
            assert!(
                others.iter().all(|(_, task)| !task.is_finished()),
                "streams of another account ended"
            );
        }
        // A busy machine may be late once, but not every time.
        let mut taken = Vec::new();
        for attempt in 0..3 {
            let name = format!("{cause:?}-{attempt}").to_lowercase();
            setting.account(&name).await;
            let token = setting.token(&name, cause.spec(&name)).await;
            let open = setting.open(&token).await.expect("streams");
            cause.happens(&setting, &name).await;
            let worst = longest(open, Instant::now()).await;
            taken.push(worst);
            if worst.1 <= LIMIT {
                break;
            }
        }
        assert!(
            taken.last().is_some_and(|(_, took)| *took <= LIMIT),
            "{cause:?}: {taken:?}"
        );
    }
    // Keys are shared, so those streams end with the last cause.
    longest(others, Instant::now()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_stream_ends_when_its_token_expires() {
    let setting = setting().await;
    setting.account("robot").await;
    // A machine that is slow may take longer than a short life to begin the streams.
    for life in [4_i64, 16, 64, 256] {
        let token = setting.short_token("robot", life).await;
        let begun = Instant::now();
        let Some(open) = setting.open(&token).await else {
            continue;
        };
        let expected = Duration::from_secs(life.unsigned_abs());
        let (what, took) = longest(open, begun).await;
        // Seconds are whole in tokens, so the end may be a second later.
        assert!(
            took <= expected + Duration::from_secs(1) + LIMIT || life < 64,
            "{what}: {took:?} of {expected:?}"
        );
        assert!(
            took + Duration::from_secs(1) >= expected,
            "{what}: {took:?} of {expected:?}"
        );
        return;
    }
    panic!("no stream began before its token expired");
}

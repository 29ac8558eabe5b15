//! Audit webhook: batches, retries, a bounded buffer, and no redirects.

use super::*;
use bareboat::server::RemoteApi;
use bareboat::server::audit::AuditWebhook;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::convert::Infallible;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU16, Ordering};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

const TOKEN: &str = "t0ken-of-the-webhook";

/// An HTTPS server that records its requests.
struct Receiver {
    port: u16,
    ca: String,
    kept: Arc<Kept>,
}

struct Kept {
    /// The status it responds with.
    code: AtomicU16,
    /// Path, Authorization header and body of each request.
    requests: Mutex<Vec<(String, String, Value)>>,
}

impl Receiver {
    async fn start() -> Receiver {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let receiver = Receiver {
            port: listener.local_addr().unwrap().port(),
            ca: made.cert.pem(),
            kept: Arc::new(Kept {
                code: AtomicU16::new(200),
                requests: Mutex::default(),
            }),
        };
        let (acceptor, kept) = (TlsAcceptor::from(Arc::new(tls)), receiver.kept.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, kept) = (acceptor.clone(), kept.clone());
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else {
                        return;
                    };
                    let service = service_fn(move |request| answer(kept.clone(), request));
                    let http = hyper::server::conn::http1::Builder::new();
                    let _ = http.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        receiver
    }

    fn answers(&self, code: u16) {
        self.kept.code.store(code, Ordering::SeqCst);
    }

    fn requests(&self) -> Vec<(String, String, Value)> {
        self.kept.requests.lock().unwrap().clone()
    }

    /// Waits until a condition holds.
    async fn until(&self, holds: impl Fn(&[(String, String, Value)]) -> bool) {
        soon(async {
            while !holds(&self.requests()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    /// Returns a server that sends its events here.
    async fn serve(&self, batching: Batching) -> TestServer {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kubeconfig");
        let kubeconfig = json!({
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {
                "server": format!("https://localhost:{}/events", self.port),
                "certificate-authority-data": BASE64_STANDARD.encode(&self.ca),
            }}],
            "users": [{"name": "u", "user": {"token": TOKEN}}],
        });
        std::fs::write(&path, kubeconfig.to_string()).unwrap();
        let webhook = AuditWebhook::new(RemoteApi::from_kubeconfig(&path).unwrap())
            .initial_backoff(Duration::from_millis(1));
        let rules = "[{level: Request, omitStages: [RequestReceived], resources: [{resources: [configmaps]}]}]";
        let audit = Audit::new(policy(rules)).webhook(webhook, Mode::Batch, batching);
        let audit = Arc::new(audit);
        let builder = TestServer::builder().without_controllers();
        builder
            .with(move |builder| builder.audit(audit.clone()))
            .start()
            .await
    }
}

async fn answer(
    kept: Arc<Kept>,
    request: http::Request<Incoming>,
) -> Result<http::Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let token = request.headers().get("authorization");
    let token = token.map_or("", |value| value.to_str().unwrap()).to_owned();
    let body = request
        .into_body()
        .collect()
        .await
        .map(|body| body.to_bytes());
    let body = serde_json::from_slice(&body.unwrap_or_default()).unwrap_or(Value::Null);
    kept.requests.lock().unwrap().push((path, token, body));
    let response = http::Response::builder()
        .status(kept.code.load(Ordering::SeqCst))
        .header("location", "/elsewhere");
    Ok(response.body(Full::default()).unwrap())
}

/// Returns the names of the objects in the recorded events.
fn reported(requests: &[(String, String, Value)]) -> Vec<String> {
    let items = requests
        .iter()
        .flat_map(|(_, _, list)| list["items"].as_array());
    let names = items
        .flatten()
        .map(|event| event["objectRef"]["name"].as_str());
    names.map(|name| name.unwrap_or("").to_owned()).collect()
}

async fn create(server: &TestServer, names: impl Iterator<Item = usize>) {
    for at in names {
        server
            .post(MAPS, &config_map(&format!("m{at}")))
            .await
            .expect(201);
    }
}

#[tokio::test]
async fn events_are_sent_in_batches() {
    let receiver = Receiver::start().await;
    let batching = Batching {
        size: 4,
        wait: Duration::from_secs(3600),
        ..Batching::default()
    };
    let server = receiver.serve(batching).await;
    create(&server, 0..6).await;
    receiver.until(|requests| !requests.is_empty()).await;
    // The rest is sent when the server shuts down.
    soon(server.stop()).await;
    let requests = receiver.requests();
    let sizes: Vec<usize> = requests
        .iter()
        .map(|(_, _, list)| list["items"].as_array().unwrap().len())
        .collect();
    assert_eq!(sizes, [4, 2]);
    let (path, token, list) = &requests[0];
    assert_eq!(path, "/events");
    assert_eq!(token, &format!("Bearer {TOKEN}"));
    assert_eq!(
        (&list["kind"], &list["apiVersion"]),
        (&json!("EventList"), &json!("audit.k8s.io/v1"))
    );
    assert_eq!(list["items"][0]["requestObject"]["data"]["a"], "b");
    assert_eq!(reported(&requests), ["m0", "m1", "m2", "m3", "m4", "m5"]);
}

#[tokio::test]
async fn a_batch_is_sent_again_after_a_failure() {
    let receiver = Receiver::start().await;
    receiver.answers(503);
    let server = receiver.serve(Batching::default()).await;
    create(&server, 0..1).await;
    receiver.until(|requests| requests.len() >= 2).await;
    receiver.answers(200);
    create(&server, 1..2).await;
    receiver
        .until(|requests| reported(requests).contains(&"m1".to_owned()))
        .await;
    assert!(
        reported(&receiver.requests())
            .iter()
            .filter(|name| *name == "m0")
            .count()
            >= 2
    );
}

#[tokio::test]
async fn an_unavailable_webhook_neither_stops_requests_nor_fills_memory() {
    let receiver = Receiver::start().await;
    receiver.answers(503);
    let batching = Batching {
        buffer: 5,
        size: 1,
        wait: Duration::ZERO,
    };
    let server = receiver.serve(batching).await;
    create(&server, 0..60).await;
    let metrics = server.get("/metrics").await.expect(200).text();
    let dropped = metrics
        .lines()
        .find_map(|line| line.strip_prefix("apiserver_audit_error_total{plugin=\"webhook\"} "));
    let dropped: usize = dropped.expect("some are dropped").parse().unwrap();
    assert!(dropped > 0, "{metrics}");
    assert!(metrics.contains("apiserver_audit_event_total 60"));
}

#[tokio::test]
async fn redirects_are_rejected() {
    for code in [301, 302, 303, 307, 308] {
        let receiver = Receiver::start().await;
        receiver.answers(code);
        let server = receiver.serve(Batching::default()).await;
        create(&server, 0..1).await;
        soon(server.stop()).await;
        let requests = receiver.requests();
        let paths: Vec<&str> = requests.iter().map(|(path, _, _)| path.as_str()).collect();
        assert_eq!(paths, ["/events"], "{code}");
    }
}

#[test]
fn an_unusable_kubeconfig_is_named() {
    let error = RemoteApi::from_kubeconfig("/nowhere/kubeconfig").unwrap_err();
    assert!(error.to_string().contains("/nowhere/kubeconfig"), "{error}");
}

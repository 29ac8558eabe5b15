//! A webhook server whose answers a test decides.

use crate::backend::Ca;
use crate::support::{Requests, Value, json};
use bareboat::server::authn::user_of_certificate;
use bareboat_testing::TestServer;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1";

/// What the server answers.
pub(crate) enum Reply {
    /// A response; the uid is added unless it has one.
    Review(Value),
    /// A code and a body.
    Raw(u16, String),
    /// Nothing, ever.
    Hang,
    /// A byte every 100 milliseconds.
    Drip,
    /// A body of that many bytes.
    Huge(usize),
    /// A redirect.
    Redirect,
    /// Admits when the semaphore is closed.
    After(Arc<Semaphore>),
}

/// Admits everything.
pub(crate) fn allow() -> Reply {
    Reply::Review(json!({"allowed": true}))
}

/// Admits with a JSON patch.
pub(crate) fn patch(operations: &Value) -> Reply {
    let patch = BASE64_STANDARD.encode(operations.to_string());
    Reply::Review(json!({"allowed": true, "patch": patch, "patchType": "JSONPatch"}))
}

/// Refuses with a Status.
pub(crate) fn deny(status: &Value) -> Reply {
    Reply::Review(json!({"allowed": false, "status": status}))
}

type Behaviour = Box<dyn Fn(&str, &Value) -> Reply + Send + Sync>;

/// One call: path and query, body, and the HTTP version.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) target: String,
    pub(crate) review: Value,
    pub(crate) version: http::Version,
    /// The content of the Authorization header.
    pub(crate) authorization: String,
    /// The context of distributed tracing.
    pub(crate) traceparent: String,
    /// The name in the client certificate, if one was presented.
    pub(crate) caller: Option<String>,
}

/// A running server.
pub(crate) struct TestHook {
    port: u16,
    ca: String,
    shared: Arc<Shared>,
}

struct Shared {
    behaviour: Behaviour,
    calls: Mutex<Vec<Call>>,
    connections: AtomicUsize,
}

impl TestHook {
    /// Starts a server; the behaviour gets the path and the `request` of a review.
    pub(crate) async fn start(
        behaviour: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static,
    ) -> TestHook {
        TestHook::start_asking(None, behaviour).await
    }

    /// Starts a server that asks for client certificates of a CA.
    pub(crate) async fn start_asking(
        callers: Option<&Ca>,
        behaviour: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static,
    ) -> TestHook {
        let (ca, tls) = certificates(callers);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            behaviour: Box::new(behaviour),
            calls: Mutex::default(),
            connections: AtomicUsize::new(0),
        });
        let tls = TlsAcceptor::from(Arc::new(tls));
        tokio::spawn(serve(listener, tls, shared.clone()));
        TestHook { port, ca, shared }
    }

    /// Returns a client configuration for a path.
    pub(crate) fn at(&self, path: &str) -> Value {
        let url = format!("https://localhost:{}{path}", self.port);
        json!({"url": url, "caBundle": BASE64_STANDARD.encode(&self.ca)})
    }

    pub(crate) fn url(&self) -> String {
        format!("https://localhost:{}", self.port)
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.shared.calls.lock().unwrap().clone()
    }

    /// Returns all calls, and forgets them.
    pub(crate) fn take_calls(&self) -> Vec<Call> {
        std::mem::take(&mut *self.shared.calls.lock().unwrap())
    }

    /// Returns the `request` of every review, and forgets them.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.take_calls()
            .into_iter()
            .map(|call| call.review["request"].clone())
            .collect()
    }

    pub(crate) fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }

    /// Returns a webhook with a rule for all operations on some resources of a group.
    pub(crate) fn webhook(&self, path: &str, group: &str, resources: &[&str]) -> Value {
        let name = path.trim_matches('/').replace('/', "-");
        json!({
            "name": format!("{name}.hooks.example.com"),
            "clientConfig": self.at(path),
            "rules": [{"operations": ["*"], "apiGroups": [group], "apiVersions": ["*"], "resources": resources}],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        })
    }
}

/// Creates a configuration; `kind` is `Mutating` or `Validating`.
pub(crate) async fn configure(server: &TestServer, kind: &str, name: &str, webhooks: &[Value]) {
    let object = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": format!("{kind}WebhookConfiguration"),
        "metadata": {"name": name},
        "webhooks": webhooks,
    });
    let path = format!(
        "{CONFIGURATIONS}/{}webhookconfigurations",
        kind.to_lowercase()
    );
    server.post(&path, &object).await.expect(201);
}

fn certificates(callers: Option<&Ca>) -> (String, rustls::ServerConfig) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let names = ["localhost", "hook.default.svc"];
    let certificate = CertificateParams::new(names.map(str::to_owned))
        .unwrap()
        .signed_by(&key, &ca)
        .unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap();
    let config = match callers {
        Some(callers) => config.with_client_cert_verifier(callers.optional_verifier()),
        None => config.with_no_client_auth(),
    };
    let mut config = config
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    (ca.pem(), config)
}

async fn serve(listener: TcpListener, tls: TlsAcceptor, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, shared) = (tls.clone(), shared.clone());
        shared.connections.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(async move {
            let Ok(stream) = tls.accept(stream).await else {
                return;
            };
            let shown = stream.get_ref().1.peer_certificates();
            let shown = shown.and_then(|chain| user_of_certificate(&chain[0]).unwrap());
            let caller = shown.map(|user| user.name.to_string());
            let service =
                service_fn(move |request| answer(request, caller.clone(), shared.clone()));
            let _ = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

type Parts = mpsc::Receiver<Result<Frame<Bytes>, Infallible>>;
type Body = http_body_util::combinators::UnsyncBoxBody<Bytes, Infallible>;

async fn answer(
    request: Request<Incoming>,
    caller: Option<String>,
    shared: Arc<Shared>,
) -> Result<Response<Body>, Infallible> {
    let target = request.uri().path_and_query().unwrap().to_string();
    let path = request.uri().path().to_owned();
    let version = request.version();
    let authorization = request.headers().get("authorization");
    let authorization = authorization.map_or("", |words| words.to_str().unwrap());
    let authorization = authorization.to_owned();
    let traceparent = request.headers().get("traceparent");
    let traceparent = traceparent.map_or("", |words| words.to_str().unwrap());
    let traceparent = traceparent.to_owned();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    shared.calls.lock().unwrap().push(Call {
        target,
        review: review.clone(),
        version,
        authorization,
        traceparent,
        caller,
    });
    let (sender, receiver): (_, Parts) = mpsc::channel(4);
    let mut response = Response::builder().status(200);
    let mut reply = (shared.behaviour)(&path, &review["request"]);
    if let Reply::After(gate) = &reply {
        let _ = gate.acquire().await;
        reply = allow();
    }
    match reply {
        Reply::Review(mut answer) => {
            if answer.get("uid").is_none() {
                answer["uid"] = review["request"]["uid"].clone();
            }
            let version = &review["apiVersion"];
            let review =
                json!({"kind": "AdmissionReview", "apiVersion": version, "response": answer});
            let bytes = Bytes::from(review.to_string());
            sender.send(Ok(Frame::data(bytes))).await.unwrap();
        }
        Reply::Raw(code, body) => {
            response = response.status(code);
            sender
                .send(Ok(Frame::data(Bytes::from(body))))
                .await
                .unwrap();
        }
        Reply::Hang | Reply::After(_) => std::future::pending().await,
        Reply::Drip => {
            tokio::spawn(async move {
                while sender
                    .send(Ok(Frame::data(Bytes::from_static(b" "))))
                    .await
                    .is_ok()
                {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            });
        }
        Reply::Huge(size) => {
            tokio::spawn(async move {
                let part = Bytes::from(vec![b' '; 64 * 1024]);
                for _ in 0..size / part.len() {
                    if sender.send(Ok(Frame::data(part.clone()))).await.is_err() {
                        return;
                    }
                }
            });
        }
        Reply::Redirect => {
            response = response
                .status(307)
                .header("location", "https://localhost:1/");
        }
    }
    let parts = futures_util::stream::unfold(receiver, |mut receiver| async {
        let part = receiver.recv().await?;
        Some((part, receiver))
    });
    Ok(response
        .body(StreamBody::new(parts).boxed_unsync())
        .unwrap())
}

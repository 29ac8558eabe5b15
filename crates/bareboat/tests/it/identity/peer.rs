//! An HTTPS server that a test scripts: an issuer of tokens, or a webhook.

use crate::support::{Value, json};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

/// A CA.
pub(super) struct Ca(CertifiedIssuer<'static, KeyPair>);

impl Ca {
    pub(super) fn new() -> Ca {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(DnType::CommonName, "a CA of the tests");
        let key = KeyPair::generate().unwrap();
        Ca(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    pub(super) fn pem(&self) -> String {
        self.0.pem()
    }

    /// Signs what a test made.
    pub(super) fn sign(&self, params: CertificateParams) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    /// Signs what a test made, for a key of the test.
    pub(super) fn sign_for(&self, params: CertificateParams, key: &KeyPair) -> String {
        params.signed_by(key, &self.0).unwrap().pem()
    }

    /// A client's certificate and key in PEM.
    pub(super) fn client(&self, common_name: &str) -> (String, String) {
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::CommonName, common_name);
        self.sign(params)
    }
}

/// How a peer answers: code, body, and the `Location` of redirects.
pub(super) struct Reply {
    code: u16,
    body: Bytes,
    location: Option<String>,
    /// Closed when the answer may be sent.
    gate: Option<Arc<Semaphore>>,
}

impl Reply {
    pub(super) fn json(value: Value) -> Reply {
        Reply::code(200, value.to_string())
    }

    pub(super) fn code(code: u16, body: impl Into<Bytes>) -> Reply {
        Reply {
            code,
            body: body.into(),
            location: None,
            gate: None,
        }
    }

    pub(super) fn redirect(code: u16, location: &str) -> Reply {
        Reply {
            location: Some(location.to_owned()),
            ..Reply::code(code, "")
        }
    }

    /// Waits until a gate is closed.
    pub(super) fn after(self, gate: &Arc<Semaphore>) -> Reply {
        Reply {
            gate: Some(gate.clone()),
            ..self
        }
    }
}

type Script = Box<dyn Fn(&str, &Value) -> Reply + Send + Sync>;

/// A running server.
pub(super) struct Peer {
    pub(super) url: String,
    pub(super) ca: String,
    shared: Arc<Shared>,
}

struct Shared {
    script: Mutex<Script>,
    calls: Mutex<Vec<(String, Value)>>,
}

impl Peer {
    /// Answers by a script, which gets the path and the body of each request.
    pub(super) async fn start(
        script: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static,
    ) -> Peer {
        let ca = Ca::new();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let (chain, key) = ca.sign(params);
        let chain = rustls::pki_types::CertificateDer::pem_slice_iter(chain.as_bytes())
            .map(Result::unwrap)
            .collect();
        let key = KeyPair::from_pem(&key).unwrap();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            script: Mutex::new(Box::new(script)),
            calls: Mutex::default(),
        });
        tokio::spawn(serve(
            listener,
            TlsAcceptor::from(Arc::new(tls)),
            shared.clone(),
        ));
        Peer {
            url: format!("https://localhost:{port}"),
            ca: ca.pem(),
            shared,
        }
    }

    /// Answers by another script from now on.
    pub(super) fn rewrite(&self, script: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static) {
        *self.shared.script.lock().unwrap() = Box::new(script);
    }

    /// The requests so far: paths and bodies.
    pub(super) fn calls(&self) -> Vec<(String, Value)> {
        self.shared.calls.lock().unwrap().clone()
    }

    /// A kubeconfig for it, in a file.
    pub(super) fn kubeconfig(&self, path: &str) -> tempfile::NamedTempFile {
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "peer",
            "clusters": [{"name": "peer", "cluster": {
                "server": format!("{}{path}", self.url),
                "certificate-authority-data": BASE64_STANDARD.encode(&self.ca),
            }}],
            "users": [{"name": "peer", "user": {"token": "of-the-server"}}],
            "contexts": [{"name": "peer", "context": {"cluster": "peer", "user": "peer"}}],
        });
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), config.to_string()).unwrap();
        file
    }
}

async fn serve(listener: TcpListener, tls: TlsAcceptor, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, shared) = (tls.clone(), shared.clone());
        tokio::spawn(async move {
            let Ok(stream) = tls.accept(stream).await else {
                return;
            };
            let service = service_fn(move |request| answer(shared.clone(), request));
            let _ = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn answer(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    shared
        .calls
        .lock()
        .unwrap()
        .push((path.clone(), body.clone()));
    let reply = (shared.script.lock().unwrap())(&path, &body);
    if let Some(gate) = &reply.gate {
        let _ = gate.acquire().await;
    }
    let mut response = Response::builder()
        .status(reply.code)
        .header("content-type", "application/json");
    if let Some(location) = reply.location {
        response = response.header("location", location);
    }
    Ok(response.body(Full::new(reply.body)).unwrap())
}

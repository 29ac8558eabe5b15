//! A test backend for subresources and aggregated groups, over HTTPS with configurable behaviour. It requires a client
//! certificate.

use crate::support::{Value, json};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use futures_util::StreamExt as _;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use std::collections::HashMap;
use std::convert::Infallible;
use std::io::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

type Body = UnsyncBoxBody<Bytes, Error>;

/// A CA.
pub(crate) struct Ca(CertifiedIssuer<'static, KeyPair>);

impl Ca {
    pub(crate) fn new() -> Ca {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Ca(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// Verifies client certificates of this CA; clients may show none.
    pub(crate) fn optional_verifier(&self) -> Arc<dyn ClientCertVerifier> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .allow_unauthenticated()
            .build()
            .unwrap()
    }

    fn signed(&self, names: &[&str], common_name: &str) -> (rcgen::Certificate, KeyPair) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params
            .distinguished_name
            .push(DnType::CommonName, common_name);
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.0).unwrap(), key)
    }

    /// Signs what a test made, and returns the certificate and its key in PEM.
    pub(crate) fn sign(&self, params: CertificateParams) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    /// Returns a serving certificate and key in PEM.
    pub(crate) fn server(&self, names: &[&str]) -> (String, String) {
        let (certificate, key) = self.signed(names, "server");
        (certificate.pem(), key.serialize_pem())
    }

    /// Returns a client certificate and key in PEM.
    pub(crate) fn client(&self, common_name: &str) -> (String, String) {
        let (certificate, key) = self.signed(&[], common_name);
        (certificate.pem(), key.serialize_pem())
    }
}

/// The protocol of a backend.
pub(crate) enum Speaks {
    Http1,
    /// HTTP/2 with a limit of concurrent streams.
    Http2(u32),
    /// Raw bytes instead of HTTP.
    Bytes(Vec<u8>),
}

/// A running backend.
pub(crate) struct TestBackend {
    pub(crate) port: u16,
    pub(crate) ca: Ca,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    calls: AtomicUsize,
    /// The last `Accept` by path and query.
    accepted: Mutex<HashMap<String, String>>,
    open: AtomicUsize,
    go_on: Notify,
}

impl TestBackend {
    /// Starts a backend that accepts client certificates of the CA.
    pub(crate) async fn start(callers: &Ca, speaks: Speaks) -> TestBackend {
        let ca = Ca::new();
        let (certificate, key) = ca.signed(&["localhost", "vms.default.svc"], "backend");
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = rustls::RootCertStore::empty();
        roots.add(callers.0.der().clone()).unwrap();
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
        let mut tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier.build().unwrap())
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        tls.alpn_protocols = match speaks {
            Speaks::Http2(_) => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            _ => vec![b"http/1.1".to_vec()],
        };
        let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared::default());
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        tokio::spawn(serve(listener, acceptor, Arc::new(speaks), shared.clone()));
        TestBackend { port, ca, shared }
    }

    /// Returns a client configuration with a URL.
    pub(crate) fn by_url(&self, path: &str) -> Value {
        let url = format!("https://localhost:{}{path}", self.port);
        json!({"url": url, "caBundle": BASE64_STANDARD.encode(self.ca.pem())})
    }

    /// Returns the number of requests.
    pub(crate) fn calls(&self) -> usize {
        self.shared.calls.load(Ordering::SeqCst)
    }

    /// Returns the last `Accept` of requests for a path and query.
    pub(crate) fn accepted(&self, target: &str) -> Option<String> {
        self.shared.accepted.lock().unwrap().get(target).cloned()
    }

    /// Returns the number of open tunnels.
    pub(crate) fn open(&self) -> usize {
        self.shared.open.load(Ordering::SeqCst)
    }

    /// Releases a waiting stream.
    pub(crate) fn go_on(&self) {
        self.shared.go_on.notify_one();
    }
}

async fn serve(listener: TcpListener, tls: TlsAcceptor, speaks: Arc<Speaks>, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, shared, speaks) = (tls.clone(), shared.clone(), speaks.clone());
        tokio::spawn(async move {
            let Ok(mut stream) = tls.accept(stream).await else {
                return;
            };
            let certificate = stream.get_ref().1.peer_certificates().unwrap()[0].clone();
            let mut builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
            match &*speaks {
                Speaks::Bytes(bytes) => {
                    let _ = stream.read(&mut [0; 1024]).await;
                    let _ = stream.write_all(bytes).await;
                    let _ = stream.shutdown().await;
                    return;
                }
                Speaks::Http2(most) => {
                    builder.http2().max_concurrent_streams(*most);
                }
                Speaks::Http1 => {}
            }
            let service =
                service_fn(move |request| answer(request, certificate.clone(), shared.clone()));
            let _ = builder
                .serve_connection_with_upgrades(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    certificate: CertificateDer<'static>,
    shared: Arc<Shared>,
) -> Result<Response<Body>, Infallible> {
    shared.calls.fetch_add(1, Ordering::SeqCst);
    if let (Some(target), Some(accept)) = (
        request.uri().path_and_query(),
        request.headers().get("accept"),
    ) {
        let accept = String::from_utf8_lossy(accept.as_bytes()).into_owned();
        let mut accepted = shared.accepted.lock().unwrap();
        accepted.insert(target.to_string(), accept);
    }
    let wish = request.uri().query().unwrap_or("").to_owned();
    let wish = wish.split('&').find_map(|pair| pair.strip_prefix("do="));
    // What a kubelet is asked.
    let wish = wish.or(match request.uri().path().split('/').nth(1) {
        Some("exec" | "attach" | "portForward") => Some("spdy"),
        Some("containerLogs") => Some("stream"),
        _ => None,
    });
    let response = Response::builder().header("x-backend", "yes");
    if wish.is_none()
        && let Some((code, document)) = document(request.uri().path())
    {
        let response = response
            .status(code)
            .header("content-type", "application/json")
            .body(full(document.to_string()));
        return Ok(response.unwrap());
    }
    let response = match wish.unwrap_or("echo") {
        "hang" => std::future::pending().await,
        "redirect" => response
            .status(307)
            .header("location", "https://localhost/elsewhere")
            .body(full("")),
        "die" => {
            let beginning = futures_util::stream::iter([Ok(Bytes::from_static(b"so far"))]);
            let end = futures_util::stream::once(async move {
                shared.go_on.notified().await;
                Err(Error::other("dead"))
            });
            response
                .header("content-length", "1000")
                .body(frames(beginning.chain(end)))
        }
        "huge" => {
            let pieces = std::iter::repeat_n(Bytes::from_static(&[b'x'; 65536]), 512);
            response.body(frames(futures_util::stream::iter(pieces.map(Ok))))
        }
        "stream" => {
            let later = futures_util::stream::unfold(shared, |shared| async move {
                shared.go_on.notified().await;
                Some((Ok(Bytes::from_static(b"more\n")), shared))
            });
            let first = futures_util::stream::iter([Ok(Bytes::from_static(b"first\n"))]);
            response.body(frames(first.chain(later)))
        }
        "mirror" => {
            let body = request.into_body().map_err(Error::other);
            response.body(body.boxed_unsync())
        }
        "upgrade" => upgrade(request, shared),
        "spdy" => spdy(request),
        "cookies" => response
            .status(418)
            .header("set-cookie", "a=b")
            .header("access-control-allow-origin", "*")
            .header("connection", "x-hop")
            .header("x-hop", "1")
            .body(full("teapot")),
        _ => response
            .header("content-type", "application/json")
            .body(full(echo(request, &certificate).await.to_string())),
    };
    Ok(response.unwrap())
}

/// The documents of an API server without aggregated discovery and without OpenAPI 3.
fn document(path: &str) -> Option<(u16, Value)> {
    let all = [
        "create",
        "delete",
        "deletecollection",
        "get",
        "list",
        "patch",
        "update",
        "watch",
    ];
    Some(match path {
        "/apis" | "/openapi/v3" => (404, json!("404 page not found")),
        "/apis/agg.example.com/v1" => (
            200,
            json!({
                "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "agg.example.com/v1",
                "resources": [
                    {"name": "things", "singularName": "thing", "namespaced": true, "kind": "Thing",
                     "verbs": all, "shortNames": ["th"]},
                    {"name": "things/console", "singularName": "", "namespaced": true, "kind": "Thing",
                     "verbs": ["get"]},
                ],
            }),
        ),
        "/openapi/v2" => (
            200,
            json!({
                "swagger": "2.0", "info": {"title": "backend", "version": "1"},
                "paths": {
                    "/apis/agg.example.com/v1/namespaces/{namespace}/things": {"get": {
                        "produces": ["application/json"],
                        "responses": {"200": {"description": "OK", "schema": {"$ref": "#/definitions/com.example.agg.v1.Thing"}}},
                        "x-kubernetes-group-version-kind": {"group": "agg.example.com", "version": "v1", "kind": "Thing"},
                    }},
                    "/apis/other.example.com/v1/": {"get": {}},
                },
                "definitions": {
                    "com.example.agg.v1.Thing": {
                        "type": "object", "description": "A thing of another server.",
                        "x-kubernetes-group-version-kind": [{"group": "agg.example.com", "version": "v1", "kind": "Thing"}],
                    },
                },
            }),
        ),
        // Nothing is left in any namespace.
        path if path.ends_with("/namespaces/leaving/things") => (
            200,
            json!({"kind": "ThingList", "apiVersion": "agg.example.com/v1", "metadata": {}, "items": []}),
        ),
        _ => return None,
    })
}

fn full(text: impl Into<Bytes>) -> Body {
    Full::new(text.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

fn frames(pieces: impl futures_util::Stream<Item = Result<Bytes, Error>> + Send + 'static) -> Body {
    StreamBody::new(pieces.map(|piece| piece.map(Frame::data))).boxed_unsync()
}

/// Returns the whole request and the caller.
async fn echo(request: Request<Incoming>, certificate: &CertificateDer<'static>) -> Value {
    let (head, body) = request.into_parts();
    let caller = bareboat::server::authn::user_of_certificate(certificate)
        .unwrap()
        .unwrap();
    let mut headers = serde_json::Map::new();
    for name in head.headers.keys() {
        let values = head.headers.get_all(name).iter();
        let values: Vec<_> = values
            .map(|value| String::from_utf8_lossy(value.as_bytes()))
            .collect();
        headers.insert(name.to_string(), json!(values));
    }
    let body = body.collect().await.unwrap().to_bytes();
    json!({
        "caller": caller.name.as_str(),
        "http": format!("{:?}", head.version),
        "method": head.method.as_str(),
        "target": head.uri.path_and_query().unwrap().as_str(),
        "headers": headers,
        "body": String::from_utf8(body.to_vec()).unwrap(),
    })
}

/// Accepts all streams of a SPDY connection, and holds them until it ends.
fn spdy(mut request: Request<Incoming>) -> http::Result<Response<Body>> {
    let protocol = request.headers()["x-stream-protocol-version"].clone();
    let upgraded = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let io = TokioIo::new(upgraded.await.unwrap());
        let settings = bareboat_spdy::Settings::default();
        let role = bareboat_spdy::Role::Server;
        let (_connection, mut incoming, driver) =
            bareboat_spdy::Connection::new(io, role, settings);
        let holding = async {
            let mut held = Vec::new();
            while let Some(stream) = incoming.next().await {
                held.push(stream);
            }
        };
        let _ = tokio::join!(driver.run(), holding);
    });
    Response::builder()
        .status(101)
        .header("connection", "upgrade")
        .header("upgrade", "SPDY/3.1")
        .header("x-stream-protocol-version", protocol)
        .body(full(""))
}

/// Sends a greeting and then echoes all bytes.
fn upgrade(mut request: Request<Incoming>, shared: Arc<Shared>) -> http::Result<Response<Body>> {
    let protocol = request.headers()["upgrade"].clone();
    let upgraded = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let mut stream = TokioIo::new(upgraded.await.unwrap());
        shared.open.fetch_add(1, Ordering::SeqCst);
        stream.write_all(b"hello ").await.unwrap();
        let (mut from, mut to) = tokio::io::split(stream);
        let _ = tokio::io::copy(&mut from, &mut to).await;
        let _ = to.shutdown().await;
        shared.open.fetch_sub(1, Ordering::SeqCst);
    });
    Response::builder()
        .status(101)
        .header("connection", "upgrade")
        .header("upgrade", protocol)
        .body(full(""))
}

//! The backend of both servers: an API server with any number of groups, and two admission webhooks. It asks for no
//! credentials, and counts what it is asked.

use std::convert::Infallible;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::until;
use crate::bench::NAMESPACE;
use crate::credentials::{self, Access};
use crate::http1::{self, Connection};
use crate::process::Process;

/// The name of its Service, in the namespace of the measured collection.
pub(super) const SERVICE: &str = "backend";

/// What a backend was asked so far.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(super) struct Asked {
    /// Discovery of one group and version.
    pub(super) probes: u64,
    /// Reviews of mutating webhooks.
    pub(super) mutations: u64,
    /// Reviews of validating webhooks.
    pub(super) validations: u64,
    /// Connections over which something was asked.
    pub(super) connections: u64,
}

/// A backend in its own process, which ends when dropped.
pub(super) struct Backend {
    /// Its port on the loopback interface.
    pub(super) port: u16,
    /// Its certificate in PEM, in base64: what configurations have as caBundle.
    pub(super) bundle: String,
    access: Access,
    _process: Process,
    _folder: tempfile::TempDir,
}

impl Backend {
    /// Starts a backend for `groups` groups and waits until it listens.
    pub(super) async fn start(groups: usize) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let names = [
            "127.0.0.1".to_owned(),
            "localhost".to_owned(),
            format!("{SERVICE}.{NAMESPACE}.svc"),
        ];
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new(names)?.self_signed(&key)?.pem();
        fs::write(folder.path().join("tls.crt"), &certificate)?;
        fs::write(folder.path().join("tls.key"), key.serialize_pem())?;
        let program = std::env::current_exe().context("the path of this program is not known")?;
        let mut command = Command::new(program);
        command
            .arg("--backend")
            .arg(folder.path())
            .arg("--groups")
            .arg(groups.to_string());
        let log = folder.path().join("log");
        let mut process = Process::spawn("the backend", &mut command, &log)?;
        let mut address = String::new();
        until("the backend listens", async || {
            process.check_alive()?;
            address = fs::read_to_string(folder.path().join("address")).unwrap_or_default();
            Ok(!address.is_empty())
        })
        .await?;
        let access = Access {
            authority: address.clone(),
            tls: credentials::trusting()?,
            token: None,
        };
        Ok(Self {
            port: address.parse::<SocketAddr>()?.port(),
            bundle: BASE64.encode(certificate),
            access,
            _process: process,
            _folder: folder,
        })
    }

    /// Returns what it was asked so far.
    pub(super) async fn asked(&self) -> Result<Asked> {
        let mut connection = Connection::open(&self.access, 4 * 1024).await?;
        let request = http1::request(&self.access, "GET", "/asked", "", b"");
        let answer = connection.fetch(&request).await?;
        Ok(serde_json::from_slice(&answer.body)?)
    }
}

/// The name of a group of the backend.
pub(super) fn group(number: usize) -> String {
    format!("g{number:03}.aggregated.example")
}

/// Serves until killed. The address is written to a file in `folder`, beside the certificate.
pub(crate) async fn run(folder: &Path, groups: usize) -> Result<()> {
    let chain = CertificateDer::pem_file_iter(folder.join("tls.crt"))?.collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_file(folder.join("tls.key"))?;
    let mut tls = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let (new, whole) = (folder.join("address.new"), folder.join("address"));
    fs::write(&new, listener.local_addr()?.to_string())?;
    fs::rename(new, whole)?;
    let served = Arc::new(Served::new(groups));
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (acceptor, served) = (acceptor.clone(), Arc::clone(&served));
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else {
                return;
            };
            let first = Arc::new(AtomicBool::new(true));
            let answer = service_fn(move |request| {
                let (served, first) = (Arc::clone(&served), Arc::clone(&first));
                async move { served.answer(request, &first).await }
            });
            // The client's end of the connection is no error.
            let _ = auto::Builder::new(TokioExecutor::new())
                .serve_connection_with_upgrades(TokioIo::new(stream), answer)
                .await;
        });
    }
}

/// What a backend serves, and its counters.
struct Served {
    discovery: Bytes,
    resources: Bytes,
    thing: Bytes,
    probes: AtomicU64,
    mutations: AtomicU64,
    validations: AtomicU64,
    connections: AtomicU64,
}

/// The part of a review that an answer needs.
#[derive(Deserialize)]
struct Review {
    request: Reviewed,
}

#[derive(Deserialize)]
struct Reviewed {
    uid: String,
}

/// The entity tag of discovery, which never changes.
const ETAG: &str = "\"1\"";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

impl Served {
    fn new(groups: usize) -> Self {
        let groups: Vec<Value> = (0..groups)
            .map(|number| {
                json!({"metadata": {"name": group(number)}, "versions": [{
                    "version": "v1", "freshness": "Current",
                    "resources": [{
                        "resource": "things", "singularResource": "thing", "scope": "Namespaced", "verbs": ["get"],
                        "responseKind": {"group": group(number), "version": "v1", "kind": "Thing"},
                    }],
                }]})
            })
            .collect();
        let discovery = json!({
            "apiVersion": "apidiscovery.k8s.io/v2", "kind": "APIGroupDiscoveryList", "metadata": {}, "items": groups,
        });
        let resources = json!({
            "apiVersion": "v1", "kind": "APIResourceList", "groupVersion": format!("{}/v1", group(0)),
            "resources": [{
                "name": "things", "singularName": "thing", "namespaced": true, "kind": "Thing", "verbs": ["get"],
            }],
        });
        let thing = json!({
            "apiVersion": format!("{}/v1", group(0)), "kind": "Thing",
            "metadata": {"name": "thing", "namespace": "default", "resourceVersion": "1"},
            "spec": {"text": "abcdefgh".repeat(120)},
        });
        Self {
            discovery: discovery.to_string().into(),
            resources: resources.to_string().into(),
            thing: thing.to_string().into(),
            probes: AtomicU64::new(0),
            mutations: AtomicU64::new(0),
            validations: AtomicU64::new(0),
            connections: AtomicU64::new(0),
        }
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
        first: &AtomicBool,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        if request.uri().path().ends_with("/tunnel") {
            return Ok(tunnel(request));
        }
        let (head, body) = request.into_parts();
        let segments: Vec<&str> = head.uri.path().trim_start_matches('/').split('/').collect();
        if segments != ["asked"] && first.swap(false, Ordering::Relaxed) {
            add(&self.connections);
        }
        Ok(match segments.as_slice() {
            ["hang"] => std::future::pending().await,
            ["asked"] => json_answer(serde_json::to_vec(&self.asked()).unwrap_or_default().into()),
            ["mutate"] => {
                add(&self.mutations);
                review(
                    body,
                    Some(r#"[{"op":"add","path":"/metadata/labels/hooked","value":"yes"}]"#),
                )
                .await
            }
            ["validate"] => {
                add(&self.validations);
                review(body, None).await
            }
            ["apis"]
                if head
                    .headers
                    .get(header::IF_NONE_MATCH)
                    .is_some_and(|tag| tag == ETAG) =>
            {
                empty(StatusCode::NOT_MODIFIED)
            }
            ["apis"] => {
                let mut answer = json_answer(self.discovery.clone());
                let headers = answer.headers_mut();
                headers.insert(header::ETAG, header::HeaderValue::from_static(ETAG));
                headers.insert(
                    header::CONTENT_TYPE,
                    header::HeaderValue::from_static(AGGREGATED),
                );
                answer
            }
            ["apis", _, "v1"] => {
                add(&self.probes);
                json_answer(self.resources.clone())
            }
            ["apis", _, "v1", "namespaces", _, "things", _] => json_answer(self.thing.clone()),
            _ => empty(StatusCode::NOT_FOUND),
        })
    }

    fn asked(&self) -> Asked {
        Asked {
            probes: self.probes.load(Ordering::Relaxed),
            mutations: self.mutations.load(Ordering::Relaxed),
            validations: self.validations.load(Ordering::Relaxed),
            connections: self.connections.load(Ordering::Relaxed),
        }
    }
}

/// Switches protocols, and reads what arrives until the other side ends it.
fn tunnel(request: Request<Incoming>) -> Response<Full<Bytes>> {
    tokio::spawn(async move {
        if let Ok(upgraded) = hyper::upgrade::on(request).await {
            let mut stream = TokioIo::new(upgraded);
            // A tunnel ends by an error when its other side is killed.
            let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
        }
    });
    let mut answer = empty(StatusCode::SWITCHING_PROTOCOLS);
    let headers = answer.headers_mut();
    headers.insert(
        header::CONNECTION,
        header::HeaderValue::from_static("Upgrade"),
    );
    headers.insert(header::UPGRADE, header::HeaderValue::from_static("bytes"));
    answer
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Allows a request, with this JSON patch.
async fn review(body: Incoming, patch: Option<&str>) -> Response<Full<Bytes>> {
    let Ok(body) = body.collect().await else {
        return empty(StatusCode::BAD_REQUEST);
    };
    let Ok(review) = serde_json::from_slice::<Review>(&body.to_bytes()) else {
        return empty(StatusCode::BAD_REQUEST);
    };
    let mut response = json!({"uid": review.request.uid, "allowed": true});
    if let Some(patch) = patch {
        response["patchType"] = "JSONPatch".into();
        response["patch"] = BASE64.encode(patch).into();
    }
    let answer = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response,
    });
    json_answer(answer.to_string().into())
}

fn json_answer(body: Bytes) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(body));
    answer.headers_mut().insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("application/json"),
    );
    answer
}

fn empty(status: StatusCode) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::default());
    *answer.status_mut() = status;
    answer
}

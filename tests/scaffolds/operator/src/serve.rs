//! The HTTPS server: reads AdmissionReviews, asks the rules, answers.

use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{Receiver, channel};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::server::TlsStream;

/// The rules behind each path.
pub fn routes() -> Router {
    Router::new()
        .route(
            "/mutate-crew",
            post(|body| answer(body, crate::crew::webhook::mutate)),
        )
        .route(
            "/validate-crew",
            post(|body| decide(body, crate::crew::webhook::validate)),
        )
        .route("/healthz", get(|| async { "ok" }))
        .route(
            "/mutate-yacht",
            post(|body| answer(body, crate::yacht::webhook::mutate)),
        )
        .route(
            "/validate-yacht",
            post(|body| decide(body, crate::yacht::webhook::validate)),
        )
}

/// Answers a review with the changes that a rule makes.
async fn answer(body: Bytes, rule: fn(&mut Value)) -> Result<String, (StatusCode, String)> {
    let review = review(&body)?;
    let mut object = review["request"]["object"].clone();
    let before = object.clone();
    rule(&mut object);
    let mut response = json!({"uid": review["request"]["uid"], "allowed": true});
    if object != before {
        let patch = json!([{"op": "replace", "path": "", "value": object}]);
        response["patchType"] = json!("JSONPatch");
        response["patch"] = json!(STANDARD.encode(patch.to_string()));
    }
    Ok(reply(response))
}

/// Answers a review with the decision of a rule.
async fn decide(
    body: Bytes,
    rule: fn(&Value, Option<&Value>) -> Result<(), String>,
) -> Result<String, (StatusCode, String)> {
    let review = review(&body)?;
    let request = &review["request"];
    let old = Some(&request["oldObject"]).filter(|old| !old.is_null());
    let mut response = json!({"uid": request["uid"], "allowed": true});
    if let Err(reason) = rule(&request["object"], old) {
        response["allowed"] = json!(false);
        response["status"] = json!({"message": reason, "code": 403});
    }
    Ok(reply(response))
}

fn review(body: &Bytes) -> Result<Value, (StatusCode, String)> {
    let wrong = |why: String| (StatusCode::BAD_REQUEST, why);
    let review: Value = serde_json::from_slice(body).map_err(|error| wrong(error.to_string()))?;
    match review["request"]["uid"].is_string() {
        true => Ok(review),
        false => Err(wrong(
            "this is not an AdmissionReview with a request".to_owned(),
        )),
    }
}

fn reply(response: Value) -> String {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
        .to_string()
}

/// Serves on an address until the process ends.
pub async fn serve(bind: SocketAddr, chain: &[u8], key: &[u8]) -> anyhow::Result<()> {
    let listener = Listener::new(TcpListener::bind(bind).await?, chain, key)?;
    println!("serving on https://{}", listener.address);
    Ok(axum::serve(listener, routes()).await?)
}

/// Connections with TLS. Each has a task until its handshake is done, so that a silent client holds up no other.
pub struct Listener {
    address: SocketAddr,
    ready: Receiver<(TlsStream<TcpStream>, SocketAddr)>,
}

impl Listener {
    /// Accepts connections of a socket, with a certificate chain and its key in PEM.
    pub fn new(socket: TcpListener, chain: &[u8], key: &[u8]) -> anyhow::Result<Listener> {
        let chain = CertificateDer::pem_slice_iter(chain).collect::<Result<Vec<_>, _>>()?;
        let key = PrivateKeyDer::from_pem_slice(key)?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        let tls = TlsAcceptor::from(Arc::new(config));
        let address = socket.local_addr()?;
        let (to, ready) = channel(64);
        tokio::spawn(async move {
            while !to.is_closed() {
                let Ok((stream, from)) = socket.accept().await else {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                };
                let (tls, to) = (tls.clone(), to.clone());
                tokio::spawn(async move {
                    let shaken = timeout(Duration::from_secs(10), tls.accept(stream)).await;
                    if let Ok(Ok(stream)) = shaken {
                        // The server is stopping if nothing takes it.
                        let _ = to.send((stream, from)).await;
                    }
                });
            }
        });
        Ok(Listener { address, ready })
    }
}

impl axum::serve::Listener for Listener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.ready.recv().await {
            Some(connection) => connection,
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        Ok(self.address)
    }
}

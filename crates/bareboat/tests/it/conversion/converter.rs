//! A conversion webhook with configurable behaviour.

use crate::support::{Value, json, text};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// The behaviour of a converter.
#[derive(Clone, Debug)]
pub(super) enum Manners {
    /// Correct, but also changes metadata that it must not change.
    Honest,
    Hanging,
    Renaming,
    Dropping,
    OtherVersion,
    OtherUid,
    BadLabel,
    Refusing(&'static str),
    Answering(u16),
    Babbling,
}

/// A running converter.
pub(super) struct TestConverter {
    port: u16,
    ca: String,
    shared: Arc<Shared>,
}

struct Shared {
    manners: Mutex<Manners>,
    /// Paths and bodies of all requests.
    calls: Mutex<Vec<(String, Value)>>,
}

impl TestConverter {
    pub(super) async fn start(manners: Manners) -> TestConverter {
        let (ca, tls) = certificates();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            manners: Mutex::new(manners),
            calls: Mutex::default(),
        });
        tokio::spawn(serve(
            listener,
            TlsAcceptor::from(Arc::new(tls)),
            shared.clone(),
        ));
        TestConverter { port, ca, shared }
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Returns a client configuration with a URL.
    pub(super) fn by_url(&self) -> Value {
        let url = format!("https://localhost:{}/convert", self.port);
        json!({"url": url, "caBundle": BASE64_STANDARD.encode(&self.ca)})
    }

    /// Returns a client configuration with a service.
    pub(super) fn by_service(&self, namespace: &str, name: &str, port: u16) -> Value {
        let service =
            json!({"namespace": namespace, "name": name, "path": "/convert", "port": port});
        json!({"service": service, "caBundle": BASE64_STANDARD.encode(&self.ca)})
    }

    pub(super) fn become_(&self, manners: Manners) {
        *self.shared.manners.lock().unwrap() = manners;
    }

    pub(super) fn calls(&self) -> Vec<Value> {
        let calls = self.shared.calls.lock().unwrap();
        calls.iter().map(|(_, body)| body.clone()).collect()
    }

    pub(super) fn paths(&self) -> Vec<String> {
        let calls = self.shared.calls.lock().unwrap();
        calls.iter().map(|(path, _)| path.clone()).collect()
    }

    /// Returns the number of objects in each call.
    pub(super) fn sizes(&self) -> Vec<usize> {
        let count = |call: &Value| call["request"]["objects"].as_array().unwrap().len();
        self.calls().iter().map(count).collect()
    }
}

fn certificates() -> (String, rustls::ServerConfig) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let names = ["localhost", "converter.default.svc", "outside.default.svc"];
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(names.map(str::to_owned))
        .unwrap()
        .signed_by(&key, &ca)
        .unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    (ca.pem(), config)
}

async fn serve(listener: TcpListener, tls: TlsAcceptor, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, shared) = (tls.clone(), shared.clone());
        tokio::spawn(async move {
            let Ok(stream) = tls.accept(stream).await else {
                return;
            };
            let service = service_fn(move |request| answer(request, shared.clone()));
            let _ = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    shared: Arc<Shared>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path_and_query().unwrap().to_string();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    shared.calls.lock().unwrap().push((path, review.clone()));
    let manners = shared.manners.lock().unwrap().clone();
    let code = match manners {
        Manners::Hanging => std::future::pending().await,
        Manners::Answering(code) => code,
        _ => 200,
    };
    let body = match manners {
        Manners::Babbling => "<html>".to_owned(),
        _ => reviewed(review, &manners).to_string(),
    };
    let response = Response::builder()
        .status(code)
        .header("location", "https://localhost/");
    Ok(response.body(Full::from(body)).unwrap())
}

fn reviewed(mut review: Value, manners: &Manners) -> Value {
    let request = review["request"].take();
    let wanted = text(&request["desiredAPIVersion"]);
    let objects = request["objects"].as_array().unwrap();
    let mut converted: Vec<Value> = objects.iter().map(|o| convert(o, wanted)).collect();
    let mut uid = request["uid"].clone();
    let mut result = json!({"status": "Success"});
    match manners {
        Manners::Renaming => converted[0]["metadata"]["name"] = json!("other"),
        Manners::Dropping => converted.clear(),
        Manners::OtherVersion => converted[0]["apiVersion"] = json!("net.example.com/v3"),
        Manners::OtherUid => uid = json!("x"),
        Manners::BadLabel => converted[0]["metadata"]["labels"] = json!({"x": "not a label"}),
        Manners::Refusing(why) => result = json!({"status": "Failure", "message": why}),
        _ => {}
    }
    review["response"] = json!({"uid": uid, "result": result, "convertedObjects": converted});
    review
}

fn convert(object: &Value, wanted: &str) -> Value {
    let mut out = object.clone();
    out["apiVersion"] = json!(wanted);
    let meta = out["metadata"].as_object_mut().unwrap();
    meta.insert("finalizers".to_owned(), json!(["example.com/mine"]));
    meta.insert("managedFields".to_owned(), json!([]));
    meta.insert("resourceVersion".to_owned(), json!("7"));
    let labels = meta.entry("labels").or_insert_with(|| json!({}));
    let labels = labels.as_object_mut().unwrap();
    if wanted.ends_with("/v2") {
        labels.insert("converted".to_owned(), json!("yes"));
    } else {
        labels.remove("converted");
    }
    let Some(spec) = out.get_mut("spec").and_then(Value::as_object_mut) else {
        return out;
    };
    if wanted.ends_with("/v2") {
        if let Some(both) = spec.remove("hostPort") {
            let (host, port) = text(&both).split_once(':').unwrap();
            spec.insert("host".to_owned(), json!(host));
            spec.insert("port".to_owned(), json!(port));
        }
    } else {
        let (host, port) = (spec.remove("host"), spec.remove("port"));
        if host.is_some() || port.is_some() {
            let part = |part: Option<Value>| part.map_or(String::new(), |p| text(&p).to_owned());
            let both = format!("{}:{}", part(host), part(port));
            spec.insert("hostPort".to_owned(), json!(both));
        }
    }
    out
}

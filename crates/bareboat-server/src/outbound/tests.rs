//! Calls over real connections on the loopback interface.
#![allow(clippy::unwrap_used)]

mod judged;

use super::clients::CALLS_PER_LANE;
use super::reach::ReachSettings;
use super::*;
use bareboat_storage::{MemoryBackend, StoreOptions};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{Response, Version};
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

const BOUNDS: Bounds = Bounds {
    time: Duration::from_secs(20),
    answer: 1000,
};

/// Answers each path differently, and counts connections and requests.
struct Peer {
    port: u16,
    connections: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
}

impl Peer {
    async fn start(certificate: CertificateDer<'static>, key: &KeyPair, h2: bool) -> Peer {
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key.into())
            .unwrap();
        if h2 {
            config.alpn_protocols = vec![b"h2".to_vec()];
        }
        let tls = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = connections.clone();
        let requests = Arc::new(AtomicUsize::new(0));
        let asked = requests.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                let (tls, asked) = (tls.clone(), asked.clone());
                tokio::spawn(async move {
                    let Ok(stream) = tls.accept(stream).await else {
                        return;
                    };
                    let service = service_fn(move |request| {
                        asked.fetch_add(1, Ordering::Relaxed);
                        answer(request)
                    });
                    let _ = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new())
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Peer {
            port,
            connections,
            requests,
        }
    }

    fn at(&self, path: &str, pem: &str) -> Destination {
        let url = format!("https://localhost:{}{path}", self.port);
        Destination::new(&Address::Url(url), "", &BASE64_STANDARD.encode(pem)).unwrap()
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let version = request.version();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let (code, body) = match path.as_str() {
        "/echo" => (200, body),
        "/version" if version == Version::HTTP_2 => (200, "2".into()),
        "/version" => (200, "1".into()),
        "/large" => (200, vec![b'x'; 1001].into()),
        "/hang" => std::future::pending().await,
        "/redirect" => (307, Bytes::new()),
        path if path.starts_with("/redirect/") => (path[10..].parse().unwrap(), Bytes::new()),
        _ => (503, "come\n back".into()),
    };
    let response = Response::builder().status(code).header("location", "/echo");
    Ok(response.body(Full::new(body)).unwrap())
}

fn outbound() -> Outbound {
    outbound_with(ReachSettings::default())
}

fn outbound_with(settings: ReachSettings) -> Outbound {
    let store = Store::open(Arc::new(MemoryBackend::new()), StoreOptions::default()).unwrap();
    Outbound::new(
        &store,
        Arc::new(bareboat_api::resolver::NoServices),
        None,
        Arc::new(Reach::new(settings)),
    )
}

fn self_signed(is_ca: IsCa) -> (CertificateDer<'static>, String, KeyPair) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.is_ca = is_ca;
    let certificate = params.self_signed(&key).unwrap();
    (certificate.der().clone(), certificate.pem(), key)
}

async fn said(outbound: &Outbound, to: &Destination, bounds: Bounds) -> String {
    let to_bytes = Bytes::from_static(b"{}");
    match outbound.post_json(to, to_bytes, bounds).await {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn calls_share_connections_and_are_bounded() {
    let (certificate, pem, key) = self_signed(IsCa::NoCa);
    for (h2, version) in [(false, "1"), (true, "2")] {
        let peer = Peer::start(certificate.clone(), &key, h2).await;
        let outbound = outbound();
        let base = format!("Post \"https://localhost:{}", peer.port);
        let cases = [
            ("/echo", "{}".to_owned()),
            ("/version", version.to_owned()),
            ("/echo", "{}".to_owned()),
            (
                "/redirect",
                format!(
                    "the server responded with the status code 307 but did not return more information ({base}/redirect\": 307 Temporary Redirect)"
                ),
            ),
            (
                "/no",
                format!(
                    "the server is currently unable to handle the request ({base}/no\": 503 Service Unavailable: come back)"
                ),
            ),
        ];
        for (path, expected) in cases {
            assert_eq!(
                said(&outbound, &peer.at(path, &pem), BOUNDS).await,
                expected
            );
        }
        assert_eq!(peer.connections.load(Ordering::Relaxed), 1);
        let large = said(&outbound, &peer.at("/large", &pem), BOUNDS).await;
        assert_eq!(
            large,
            format!("{base}/large\": the answer has more than 1000 bytes")
        );
        let short = Bounds {
            time: Duration::from_millis(100),
            ..BOUNDS
        };
        let late = said(&outbound, &peer.at("/hang", &pem), short).await;
        assert_eq!(late, format!("{base}/hang\": context deadline exceeded"));
        assert_eq!(outbound.clients.len(), 1);
    }
}

#[tokio::test]
async fn calls_to_many_hosts_with_one_certificate_need_one_connection_each() {
    let (certificate, pem, key) = self_signed(IsCa::NoCa);
    let mut peers = Vec::new();
    for _ in 0..3 {
        peers.push(Peer::start(certificate.clone(), &key, true).await);
    }
    let outbound = Arc::new(outbound());
    let mut hanging = Vec::new();
    for number in 0..CALLS_PER_LANE {
        for peer in &peers {
            // The first call to a host connects.
            let path = if number == 0 { "/echo" } else { "/hang" };
            let (outbound, to) = (outbound.clone(), peer.at(path, &pem));
            let call = async move { said(&outbound, &to, BOUNDS).await };
            match number {
                0 => assert_eq!(call.await, "{}"),
                _ => hanging.push(tokio::spawn(call)),
            }
        }
    }
    for peer in &peers {
        while peer.requests.load(Ordering::Relaxed) < CALLS_PER_LANE {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(
            said(&outbound, &peer.at("/version", &pem), BOUNDS).await,
            "2"
        );
        assert_eq!(peer.connections.load(Ordering::Relaxed), 1);
    }
    hanging.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn a_certificate_is_trusted_if_the_bundle_has_it_or_its_issuer() {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let issued = |name: &str| {
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.signed_by(&key, &ca).unwrap().der().clone()
    };
    let good = Peer::start(issued("localhost"), &key, false).await;
    let misnamed = Peer::start(issued("elsewhere"), &key, false).await;
    // As common tools make them: self-signed, and marked as an authority.
    let (own, own_pem, own_key) = self_signed(IsCa::Ca(BasicConstraints::Unconstrained));
    let own = Peer::start(own, &own_key, false).await;
    let outbound = outbound();
    let cases = [
        (&good, ca.pem(), "{}"),
        (&good, format!("{own_pem}\n{}", ca.pem()), "{}"),
        (
            &good,
            own_pem.clone(),
            "x509: certificate signed by unknown authority",
        ),
        (&own, own_pem.clone(), "{}"),
        (&own, ca.pem(), "x509: "),
        (&misnamed, ca.pem(), "x509: certificate not valid for name"),
        (
            &good,
            "nothing".to_owned(),
            "the CA bundle cannot be used: it holds no certificate",
        ),
    ];
    for (index, (peer, bundle, expected)) in cases.into_iter().enumerate() {
        let found = said(&outbound, &peer.at("/echo", &bundle), BOUNDS).await;
        assert!(found.contains(expected), "{index}: {found}");
    }
}

#[test]
fn invalid_addresses_are_rejected() {
    let service = |namespace: &str, name: &str| Address::Service {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        path: "a/b".to_owned(),
        port: 8443,
    };
    let url = |url: &str| Address::Url(url.to_owned());
    let cases = [
        (service("ns", "hook"), "https://hook.ns.svc:8443/a/b?q=1"),
        (
            url("https://a.example/x?y=2"),
            "https://a.example/x?y=2&q=1",
        ),
        (
            service("ns", "evil.com/"),
            "\"evil.com/\" cannot be the name of a service or its namespace",
        ),
        (
            service("", "hook"),
            "\"\" cannot be the name of a service or its namespace",
        ),
        (
            url("http://a.example"),
            "\"http://a.example?q=1\" is no https URL",
        ),
        (url("a.example"), "\"a.example?q=1\" is no"),
    ];
    for (address, expected) in cases {
        let found = match Destination::new(&address, "q=1", "") {
            Ok(destination) => destination.uri.to_string(),
            Err(error) => error.to_string(),
        };
        assert!(found.starts_with(expected), "{found}");
    }
}

#[tokio::test]
async fn a_refused_connection_is_reported() {
    // Bound, so that no other process gets the port, but not listening.
    let closed = tokio::net::TcpSocket::new_v4().unwrap();
    closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = closed.local_addr().unwrap().port();
    let url = format!("https://127.0.0.1:{port}");
    let (_, pem, _) = self_signed(IsCa::NoCa);
    let nobody = Destination::new(&Address::Url(url), "", &BASE64_STANDARD.encode(pem)).unwrap();
    let found = said(&outbound(), &nobody, BOUNDS).await;
    let expected = format!(
        "Post \"https://127.0.0.1:{port}/\": dial tcp 127.0.0.1:{port}: connect: connection refused"
    );
    assert_eq!(found, expected);
}

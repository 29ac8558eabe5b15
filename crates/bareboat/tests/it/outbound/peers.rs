//! Destinations that fail in different ways.

use crate::support::{Value, json};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_rustls::TlsAcceptor;

/// A ServerHello of TLS 1.0 with an old cipher.
const TLS_1_0: [u8; 47] = {
    let mut bytes = [7; 47];
    let head = [0x16, 3, 1, 0, 42, 2, 0, 0, 38, 3, 1];
    let mut at = 0;
    while at < head.len() {
        bytes[at] = head[at];
        at += 1;
    }
    // After the random bytes: no session, the cipher, no compression.
    bytes[43] = 0;
    bytes[44] = 0;
    bytes[45] = 0x2f;
    bytes[46] = 0;
    bytes
};

type Case = (&'static str, Value, Option<&'static str>, bool);

/// Running peers.
pub(super) struct Peers {
    ca: String,
    good: u16,
    misnamed: u16,
    expired: u16,
    plain: u16,
    old: u16,
    mute: u16,
    full: (u16, Vec<TcpStream>),
    closed: TcpSocket,
    followed: Arc<AtomicUsize>,
    _full: TcpListener,
}

impl Peers {
    pub(super) async fn start() -> Peers {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let followed = Arc::new(AtomicUsize::new(0));
        let https = |name: &str, expired: bool| {
            let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
            if expired {
                params.not_before = date_time_ymd(2020, 1, 1);
                params.not_after = date_time_ymd(2020, 2, 1);
            }
            let key = KeyPair::generate().unwrap();
            let certificate = params.signed_by(&key, &ca).unwrap().der().clone();
            let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let config = rustls::ServerConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(vec![certificate], key)
                .unwrap();
            TlsAcceptor::from(Arc::new(config))
        };
        let closed = TcpSocket::new_v4().unwrap();
        closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        // Nobody accepts here, so that further connections wait like those through a filter.
        let full = TcpSocket::new_v4().unwrap();
        full.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = full.listen(1).unwrap();
        let address = listener.local_addr().unwrap();
        let mut waiting = Vec::new();
        for _ in 0..4 {
            let connect = TcpStream::connect(address);
            if let Ok(Ok(stream)) = tokio::time::timeout(Duration::from_millis(200), connect).await
            {
                waiting.push(stream);
            }
        }
        Peers {
            ca: ca.pem(),
            good: tls(https("localhost", false), followed.clone()).await,
            misnamed: tls(https("elsewhere", false), followed.clone()).await,
            expired: tls(https("localhost", true), followed.clone()).await,
            plain: speaking(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await,
            old: speaking(&TLS_1_0).await,
            mute: speaking(b"").await,
            full: (address.port(), waiting),
            closed,
            followed,
            _full: listener,
        }
    }

    /// Returns how many requests came to the target of a redirect.
    pub(super) fn followed(&self) -> usize {
        self.followed.load(Ordering::SeqCst)
    }

    pub(super) fn bundle(&self) -> String {
        BASE64_STANDARD.encode(&self.ca)
    }

    /// Returns a client configuration for a path of the peer with a good certificate.
    pub(super) fn https(&self, path: &str) -> Value {
        self.at(self.good, path)
    }

    fn at(&self, port: u16, path: &str) -> Value {
        json!({"url": format!("https://localhost:{port}{path}"), "caBundle": self.bundle()})
    }

    /// Returns name, client configuration, cause in words, and whether a caller that passes answers on has no failure.
    pub(super) fn cases(&self) -> Vec<Case> {
        let mut stranger = self.https("/page");
        let key = KeyPair::generate().unwrap();
        let other = CertificateParams::default().self_signed(&key).unwrap();
        stranger["caBundle"] = json!(BASE64_STANDARD.encode(other.pem()));
        let closed = self.closed.local_addr().unwrap().port();
        assert!(!self.full.1.is_empty());
        vec![
            (
                "closed",
                self.at(closed, ""),
                Some("connection refused"),
                false,
            ),
            // It takes ten seconds, so once is enough.
            ("filtered", self.at(self.full.0, ""), None, false),
            ("mute", self.at(self.mute, ""), Some(""), false),
            ("plain", self.at(self.plain, ""), Some("tls: "), false),
            ("old", self.at(self.old, ""), Some("tls: "), false),
            (
                "misnamed",
                self.at(self.misnamed, ""),
                Some("x509: certificate not valid for name"),
                false,
            ),
            (
                "expired",
                self.at(self.expired, ""),
                Some("x509: certificate has expired"),
                false,
            ),
            (
                "stranger",
                stranger,
                Some("x509: certificate signed by unknown authority"),
                false,
            ),
            ("page", self.https("/page"), Some("TOP SECRET"), true),
            ("moved", self.https("/redirect/302"), Some("302"), true),
            (
                "endless",
                self.https("/endless"),
                Some("the answer has more than"),
                true,
            ),
            // It takes thirty seconds.
            ("slow", self.https("/slow"), None, true),
        ]
    }
}

/// A port that answers every connection with these bytes.
async fn speaking(bytes: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let _ = stream.read(&mut [0; 1024]).await;
                let _ = stream.write_all(bytes).await;
            });
        }
    });
    port
}

async fn tls(acceptor: TlsAcceptor, followed: Arc<AtomicUsize>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, followed) = (acceptor.clone(), followed.clone());
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    answer(stream, port, &followed).await;
                }
            });
        }
    });
    port
}

async fn answer(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    port: u16,
    followed: &AtomicUsize,
) {
    let mut head = vec![0; 4096];
    let read = stream.read(&mut head).await.unwrap_or(0);
    let head = String::from_utf8_lossy(&head[..read]).into_owned();
    let path = head.split(' ').nth(1).unwrap_or("").to_owned();
    let streams = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    if let Some(rest) = path.strip_prefix("/redirect/") {
        let code: String = rest.chars().take(3).collect();
        let target = format!("https://localhost:{port}/followed");
        let text =
            format!("HTTP/1.1 {code} Moved\r\nlocation: {target}\r\ncontent-length: 0\r\n\r\n");
        let _ = stream.write_all(text.as_bytes()).await;
    } else if path.starts_with("/followed") {
        followed.fetch_add(1, Ordering::SeqCst);
    } else if path.starts_with("/endless") {
        let _ = stream.write_all(streams.as_bytes()).await;
        let chunk = [b"10000\r\n".as_slice(), &[b' '; 65536], b"\r\n"].concat();
        while stream.write_all(&chunk).await.is_ok() {}
    } else if path.starts_with("/slow") {
        let _ = stream.write_all(streams.as_bytes()).await;
        while stream.write_all(b"1\r\n \r\n").await.is_ok() && stream.flush().await.is_ok() {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    } else {
        let text = "HTTP/1.1 500 Broken\r\ncontent-length: 10\r\n\r\nTOP SECRET";
        let _ = stream.write_all(text.as_bytes()).await;
    }
    let _ = stream.flush().await;
    let _ = stream.shutdown().await;
}

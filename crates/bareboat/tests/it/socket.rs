//! Real sockets: TLS with HTTP/1.1 or HTTP/2, and raw bytes.

use crate::support::{Answer, Watching, read, request};
use bareboat_testing::TestServer;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The client certificate of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum As {
    Admin,
    Nobody,
}

/// Opens a TLS connection with the given protocol.
pub(crate) async fn tls(server: &TestServer, who: As, protocol: &str) -> TlsStream<TcpStream> {
    let shown = (who == As::Admin).then(|| server.admin_certificate());
    connect(server, shown, protocol).await
}

/// Opens a TLS connection with the given protocol and small kernel buffers.
pub(crate) async fn narrow(server: &TestServer, who: As, protocol: &str) -> TlsStream<TcpStream> {
    let shown = (who == As::Admin).then(|| server.admin_certificate());
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(16 * 1024).unwrap();
    let stream = socket.connect(server.address()).await.unwrap();
    encrypt(server, shown, protocol, stream).await
}

/// Opens a TLS connection for HTTP/1.1 with a client certificate.
pub(crate) async fn with_certificate(
    server: &TestServer,
    shown: (&str, &str),
) -> TlsStream<TcpStream> {
    connect(server, Some(shown), "http/1.1").await
}

/// Opens a TLS connection with a client certificate and the given protocol.
pub(crate) async fn connect(
    server: &TestServer,
    shown: Option<(&str, &str)>,
    protocol: &str,
) -> TlsStream<TcpStream> {
    let stream = TcpStream::connect(server.address()).await.unwrap();
    encrypt(server, shown, protocol, stream).await
}

async fn encrypt(
    server: &TestServer,
    shown: Option<(&str, &str)>,
    protocol: &str,
    stream: TcpStream,
) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(server.ca().as_bytes()) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match shown {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = CertificateDer::pem_slice_iter(certificate.as_bytes())
                .map(Result::unwrap)
                .collect();
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
            builder.with_client_auth_cert(chain, key).unwrap()
        }
    };
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .unwrap()
}

/// A connection with either protocol.
pub(crate) enum Connection {
    One(http1::SendRequest<Full<Bytes>>),
    Two(http2::SendRequest<Full<Bytes>>),
}

impl Connection {
    pub(crate) async fn http1(server: &TestServer, who: As) -> Connection {
        Connection::over_http1(tls(server, who, "http/1.1").await).await
    }

    pub(crate) async fn over_http1(stream: TlsStream<TcpStream>) -> Connection {
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Connection::One(sender)
    }

    pub(crate) async fn http2(server: &TestServer, who: As) -> Connection {
        Connection::over_http2(tls(server, who, "h2").await).await.0
    }

    /// Returns the connection, and a task that ends with it.
    pub(crate) async fn over_http2(
        stream: TlsStream<TcpStream>,
    ) -> (Connection, tokio::task::JoinHandle<hyper::Result<()>>) {
        let io = TokioIo::new(stream);
        let mut builder = http2::Builder::new(TokioExecutor::new());
        // The client's own limits are not under test.
        builder.max_header_list_size(8 << 20);
        let (sender, connection) = builder.handshake(io).await.unwrap();
        (Connection::Two(sender), tokio::spawn(connection))
    }

    /// Sends a request and returns the response before its body is read.
    pub(crate) async fn start(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> http::Response<Incoming> {
        let whole = format!("https://localhost{path}");
        let sent = match self {
            Connection::One(sender) => {
                let mut headers = headers.to_vec();
                headers.push(("host", "localhost"));
                let request = request(method, path, &headers, body).map(Full::new);
                sender.ready().await.unwrap();
                sender.send_request(request).await
            }
            Connection::Two(sender) => {
                let request = request(method, &whole, headers, body).map(Full::new);
                sender.ready().await.unwrap();
                sender.send_request(request).await
            }
        };
        sent.unwrap()
    }

    pub(crate) async fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        read(self.start(method, path, headers, body).await).await
    }

    pub(crate) async fn watch(&mut self, path: &str) -> Watching<Incoming> {
        let response = self.start("GET", path, &[], "").await;
        assert_eq!(response.status(), 200);
        Watching::new(response)
    }
}

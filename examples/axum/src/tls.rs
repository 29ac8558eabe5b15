//! TLS for axum: kubectl shows tokens over TLS only.

use anyhow::Context as _;
use axum::serve::Listener;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

const HANDSHAKE: Duration = Duration::from_secs(10);

/// Connections whose handshake is done.
pub(crate) struct TlsListener {
    ready: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    address: SocketAddr,
}

/// Listens on a local port with a certificate.
pub(crate) async fn listen(port: u16, chain: &Path, key: &Path) -> anyhow::Result<TlsListener> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(chain)?.collect();
    let key = PrivateKeyDer::from_pem_file(key).context("the private key")?;
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain.context("the certificate")?, key)?;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let address = listener.local_addr()?;
    let (sender, ready) = mpsc::channel(64);
    tokio::spawn(async move {
        while !sender.is_closed() {
            let Ok((stream, address)) = listener.accept().await else {
                // Mostly there are no more file descriptors.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let (acceptor, sender) = (acceptor.clone(), sender.clone());
            // A client that is slow with its handshake keeps nobody waiting.
            tokio::spawn(async move {
                let handshake = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream));
                if let Ok(Ok(stream)) = handshake.await {
                    let _ = sender.send((stream, address)).await;
                }
            });
        }
    });
    Ok(TlsListener { ready, address })
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.ready.recv().await {
            Some(connection) => connection,
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

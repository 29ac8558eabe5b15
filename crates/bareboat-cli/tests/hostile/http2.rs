//! An HTTP/2 client that opens streams and reads nothing.

use crate::client::Caller;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

/// One connection; it is over when the server or the client closes it.
#[derive(Clone)]
pub(crate) struct Streams {
    sender: http2::SendRequest<Empty<Bytes>>,
    over: Arc<JoinHandle<()>>,
}

impl Streams {
    /// Opens a connection.
    pub(crate) async fn open(caller: &Caller) -> Streams {
        let caller = caller.speaking("h2");
        let socket = TcpStream::connect(&caller.address).await.unwrap();
        let name = ServerName::try_from("localhost").expect("a name");
        let tls = TlsConnector::from(Arc::clone(&caller.tls));
        let stream = tls.connect(name, socket).await.unwrap();
        // Maximum windows: the server must limit what it sends.
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(16 << 20)
            .initial_connection_window_size(1 << 30)
            .handshake(TokioIo::new(stream))
            .await
            .unwrap();
        let over = Arc::new(tokio::spawn(async move { drop(connection.await) }));
        Streams { sender, over }
    }

    /// Sends a request and does not read its body.
    pub(crate) async fn get(
        &mut self,
        path: &str,
        accept: &str,
    ) -> hyper::Result<http::Response<Incoming>> {
        self.sender.ready().await?;
        let request = Request::get(format!("https://localhost{path}"))
            .header(http::header::ACCEPT, accept)
            .body(Empty::new())
            .unwrap();
        self.sender.send_request(request).await
    }

    /// Returns whether the server has closed the connection.
    pub(crate) fn is_over(&self) -> bool {
        self.over.is_finished()
    }
}

/// Reads an answer to its end.
pub(crate) async fn read(answer: http::Response<Incoming>) -> hyper::Result<Bytes> {
    Ok(answer.into_body().collect().await?.to_bytes())
}

/// Runs a future to its end.
pub(crate) fn wait_for<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
        .block_on(work)
}

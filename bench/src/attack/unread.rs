//! Clients that ask for much and read nothing.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use http::Request;
use http_body_util::Empty;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::AsyncWriteExt as _;

use crate::credentials::Access;
use crate::http1;

/// Connections with many streams, and the streams of each.
const CONNECTIONS: usize = 3;
const STREAMS: usize = 200;

/// Sends one request on many connections and reads no response.
pub(super) async fn leave(access: &Access, request: &[u8], count: usize) -> Result<()> {
    let mut held = Vec::new();
    for _ in 0..count {
        let mut stream = http1::dial(&access.authority, &access.tls).await?;
        stream.write_all(request).await?;
        stream.flush().await?;
        held.push(stream);
    }
    std::future::pending::<()>().await;
    drop(held);
    Ok(())
}

/// Gets one path on very many streams of few HTTP/2 connections and reads no body. Connections that end are opened
/// again.
pub(super) async fn streams(access: &Access, path: &str) -> Result<()> {
    let mut tls = (*access.tls).clone();
    tls.alpn_protocols = vec![b"h2".to_vec()];
    let tls = Arc::new(tls);
    let client = async || -> Result<()> {
        loop {
            // A refused or ended connection is an answer, too.
            let _ = hold(access, &tls, path).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    futures_util::future::try_join_all((0..CONNECTIONS).map(|_| client())).await?;
    Ok(())
}

/// Opens one connection and all of its streams, and waits until the server ends it.
async fn hold(access: &Access, tls: &Arc<rustls::ClientConfig>, path: &str) -> Result<()> {
    let stream = http1::dial(&access.authority, tls).await?;
    // The window of a stream has room for a list, that of the connection for little: the server has the rest.
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(16 << 20)
        .initial_connection_window_size(1 << 20)
        .handshake(TokioIo::new(stream))
        .await?;
    let ask = async || -> Result<http::Response<hyper::body::Incoming>> {
        let mut sender = sender.clone();
        sender.ready().await?;
        let mut request = Request::get(format!("https://{}{path}", access.authority));
        if let Some(token) = &access.token {
            request = request.header(http::header::AUTHORIZATION, format!("Bearer {token}"));
        }
        Ok(sender
            .send_request(request.body(Empty::<Bytes>::new())?)
            .await?)
    };
    let asked = futures_util::future::join_all((0..STREAMS).map(|_| ask()));
    let unread = async {
        let bodies = asked.await;
        std::future::pending::<()>().await;
        drop(bodies);
    };
    tokio::select! {
        ended = connection => ended?,
        () = unread => {}
    }
    Ok(())
}

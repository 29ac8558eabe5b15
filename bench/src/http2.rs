//! An HTTP/2 client with the flow-control windows of Go clients, which are the most common.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};

use crate::credentials::Access;
use crate::http1::dial;

/// A connection with one request at a time.
pub(crate) struct Connection {
    sender: http2::SendRequest<Empty<Bytes>>,
    access: Access,
}

impl Connection {
    /// Opens a connection and requires HTTP/2.
    pub(crate) async fn open(access: &Access) -> Result<Self> {
        let mut tls = (*access.tls).clone();
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let stream = dial(&access.authority, &Arc::new(tls)).await?;
        if stream.get_ref().1.alpn_protocol() != Some(b"h2".as_slice()) {
            bail!("the server does not speak HTTP/2");
        }
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(4 << 20)
            .initial_connection_window_size(1 << 30)
            .handshake(TokioIo::new(stream))
            .await?;
        // Its end shows as an error of the next request.
        tokio::spawn(async move { drop(connection.await) });
        Ok(Self {
            sender,
            access: access.clone(),
        })
    }

    /// Gets a path and returns the status and the number of bytes.
    pub(crate) async fn get(&mut self, path: &str) -> Result<(u16, u64)> {
        let mut request = Request::get(format!("https://{}{path}", self.access.authority))
            .header(http::header::ACCEPT, "application/json");
        if let Some(token) = &self.access.token {
            request = request.header(http::header::AUTHORIZATION, format!("Bearer {token}"));
        }
        self.sender
            .ready()
            .await
            .context("the HTTP/2 connection is closed")?;
        let answer = self
            .sender
            .send_request(request.body(Empty::new())?)
            .await?;
        let status = answer.status().as_u16();
        let mut body = answer.into_body();
        let mut length = 0;
        while let Some(frame) = body.frame().await {
            length += frame?.data_ref().map_or(0, |data| data.len() as u64);
        }
        Ok((status, length))
    }
}

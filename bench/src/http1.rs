//! A minimal HTTP/1.1 client. It writes prepared bytes and counts the bytes of the response without parsing them. The
//! generator shares processors with the server under test, so it must be cheap.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::credentials::Access;

/// How much of an error response is kept, to show it.
const EXCERPT: usize = 600;

/// Opens a TLS connection to `authority`.
pub(crate) async fn dial(authority: &str, tls: &Arc<ClientConfig>) -> Result<TlsStream<TcpStream>> {
    let tcp = TcpStream::connect(authority)
        .await
        .with_context(|| format!("cannot reach {authority}"))?;
    tcp.set_nodelay(true)?;
    let host = authority
        .rsplit_once(':')
        .map_or(authority, |(host, _)| host)
        .to_owned();
    let stream = TlsConnector::from(Arc::clone(tls))
        .connect(ServerName::try_from(host)?, tcp)
        .await?;
    Ok(stream)
}

/// Builds the bytes of one request.
pub(crate) fn request(
    access: &Access,
    method: &str,
    path: &str,
    content_type: &str,
    body: &[u8],
) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(body.len() + path.len() + 256);
    bytes.extend_from_slice(
        format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", access.authority).as_bytes(),
    );
    if content_type.contains("protobuf") {
        bytes.extend_from_slice(b"Accept: application/vnd.kubernetes.protobuf\r\n");
    } else {
        bytes.extend_from_slice(b"Accept: application/json\r\n");
    }
    if let Some(token) = &access.token {
        bytes.extend_from_slice(format!("Authorization: Bearer {token}\r\n").as_bytes());
    }
    if !body.is_empty() {
        let head = format!(
            "Content-Type: {content_type}\r\nContent-Length: {}\r\n",
            body.len()
        );
        bytes.extend_from_slice(head.as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    bytes
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The HTTP status.
    pub(crate) status: u16,
    /// Length of the body, in bytes.
    pub(crate) length: u64,
    /// The beginning of an error body, or the whole body if requested.
    pub(crate) body: Vec<u8>,
}

/// How the end of a body is found.
#[derive(Clone, Copy, Debug)]
enum Framing {
    Length(u64),
    Chunked,
}

/// A connection with one request at a time.
pub(crate) struct Connection {
    stream: TlsStream<TcpStream>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Connection {
    /// Opens a connection with a read buffer of `buffer` bytes.
    pub(crate) async fn open(access: &Access, buffer: usize) -> Result<Self> {
        let stream = dial(&access.authority, &access.tls).await?;
        Ok(Self {
            stream,
            buffer: vec![0; buffer],
            start: 0,
            end: 0,
        })
    }

    /// Sends a request and counts its response.
    pub(crate) async fn send(&mut self, request: &[u8]) -> Result<Answer> {
        self.exchange(request, EXCERPT, false).await
    }

    /// Sends a request and keeps the whole response.
    pub(crate) async fn fetch(&mut self, request: &[u8]) -> Result<Answer> {
        self.exchange(request, usize::MAX, true).await
    }

    async fn exchange(&mut self, request: &[u8], keep: usize, always: bool) -> Result<Answer> {
        self.stream.write_all(request).await?;
        self.stream.flush().await?;
        let (status, framing) = self.head().await?;
        let mut answer = Answer {
            status,
            length: 0,
            body: Vec::new(),
        };
        let keep = if always || status >= 400 { keep } else { 0 };
        let mut take = |bytes: &[u8]| {
            answer.length += bytes.len() as u64;
            let room = keep.saturating_sub(answer.body.len());
            answer
                .body
                .extend_from_slice(&bytes[..bytes.len().min(room)]);
        };
        match framing {
            Framing::Length(length) => self.take(length, &mut take).await?,
            Framing::Chunked => loop {
                let size = self.chunk_size().await?;
                self.take(size, &mut take).await?;
                self.line().await?;
                if size == 0 {
                    break;
                }
            },
        }
        Ok(answer)
    }

    /// Sends a watch request and returns the stream after the response headers.
    pub(crate) async fn watch(mut self, request: &[u8]) -> Result<Events> {
        self.stream.write_all(request).await?;
        self.stream.flush().await?;
        match self.head().await? {
            (200, Framing::Chunked) => Ok(Events {
                connection: self,
                left: 0,
            }),
            (status, _) => bail!("the watch was answered with {status}"),
        }
    }

    /// Reads the status line and the headers that define the end of the body.
    async fn head(&mut self) -> Result<(u16, Framing)> {
        let line = self.line().await?;
        let status = std::str::from_utf8(&line)?
            .split(' ')
            .nth(1)
            .and_then(|code| code.parse().ok());
        let status: u16 = status.context("no HTTP/1.1 status line")?;
        let mut framing = Framing::Length(0);
        loop {
            let line = self.line().await?;
            if line.is_empty() {
                return Ok((status, framing));
            }
            let line = std::str::from_utf8(&line)?;
            let (name, value) = line.split_once(':').context("a header without a colon")?;
            if name.eq_ignore_ascii_case("content-length") {
                framing = Framing::Length(value.trim().parse()?);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                framing = Framing::Chunked;
            }
        }
    }

    async fn chunk_size(&mut self) -> Result<u64> {
        let line = self.line().await?;
        let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
        Ok(u64::from_str_radix(
            std::str::from_utf8(digits)?.trim(),
            16,
        )?)
    }

    /// Reads a line and drops its end.
    async fn line(&mut self) -> Result<Vec<u8>> {
        let mut line = Vec::new();
        loop {
            let unread = &self.buffer[self.start..self.end];
            if let Some(at) = memchr::memchr(b'\n', unread) {
                line.extend_from_slice(&unread[..at]);
                self.start += at + 1;
                if line.last() == Some(&b'\r') {
                    line.pop();
                }
                return Ok(line);
            }
            line.extend_from_slice(unread);
            if line.len() > 64 * 1024 {
                bail!("a header line has no end");
            }
            self.fill().await?;
        }
    }

    /// Passes exactly `length` bytes to `sink`.
    async fn take(&mut self, mut length: u64, sink: &mut impl FnMut(&[u8])) -> Result<()> {
        while length > 0 {
            if self.start == self.end {
                self.fill().await?;
            }
            let step = (self.end - self.start).min(usize::try_from(length).unwrap_or(usize::MAX));
            sink(&self.buffer[self.start..self.start + step]);
            self.start += step;
            length -= step as u64;
        }
        Ok(())
    }

    /// Refills the buffer, which must be empty.
    async fn fill(&mut self) -> Result<()> {
        self.start = 0;
        self.end = self.stream.read(&mut self.buffer).await?;
        if self.end == 0 {
            bail!("the server closed the connection");
        }
        Ok(())
    }
}

/// The events of a watch, counted by their line feeds.
pub(crate) struct Events {
    connection: Connection,
    left: u64,
}

impl Events {
    /// Waits for more bytes and returns how many events they complete.
    pub(crate) async fn next(&mut self) -> Result<usize> {
        if self.left == 0 {
            self.left = self.connection.chunk_size().await?;
            if self.left == 0 {
                bail!("the watch ended");
            }
        }
        let connection = &mut self.connection;
        if connection.start == connection.end {
            connection.fill().await?;
        }
        let step = (connection.end - connection.start)
            .min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let bytes = &connection.buffer[connection.start..connection.start + step];
        let events = memchr::memchr_iter(b'\n', bytes).count();
        connection.start += step;
        self.left -= step as u64;
        if self.left == 0 {
            connection.line().await?;
        }
        Ok(events)
    }
}

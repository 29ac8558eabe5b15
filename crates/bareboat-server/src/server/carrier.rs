//! The stream below HTTP: a socket, encrypted or not.
//!
//! One type for both, so that the code of HTTP is compiled once.

use crate::sockets::Socket;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::server::TlsStream;

/// A connection that a client opened.
pub(super) enum Carrier {
    Plain(Socket),
    /// Boxed: a session of TLS is large, and plain connections need no room for it.
    Tls(Box<TlsStream<Socket>>),
}

impl AsyncRead for Carrier {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Carrier::Plain(stream) => Pin::new(stream).poll_read(cx, into),
            Carrier::Tls(stream) => Pin::new(stream).poll_read(cx, into),
        }
    }
}

impl AsyncWrite for Carrier {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        piece: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Carrier::Plain(stream) => Pin::new(stream).poll_write(cx, piece),
            Carrier::Tls(stream) => Pin::new(stream).poll_write(cx, piece),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Carrier::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
            Carrier::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Carrier::Plain(stream) => stream.is_write_vectored(),
            Carrier::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Carrier::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Carrier::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Carrier::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Carrier::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

//! What all TCP connections here have in common, whoever made them.

use socket2::{SockRef, TcpKeepalive};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// After so much silence a peer is asked whether it is still there, and then so often.
const SILENCE: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(15));

/// Sends small messages at once, and notices peers that vanished: somebody may wait for years otherwise, in a tunnel
/// in which nothing is said.
pub(crate) fn tune(stream: &TcpStream) {
    let alive = TcpKeepalive::new()
        .with_time(SILENCE.0)
        .with_interval(SILENCE.1);
    // A connection that cannot be tuned, because it has just ended, will say so itself.
    let _ = stream.set_nodelay(true);
    let _ = SockRef::from(stream).set_tcp_keepalive(&alive);
}

/// A connection somebody made to us.
///
/// TLS hands over its records as lists, mostly of one. One piece goes out as what it is: the kernel takes longer over a
/// list, for a single event of a watch a twentieth of all that sending it costs.
pub(crate) struct Socket(TcpStream);

impl Socket {
    /// Tunes a connection that was accepted.
    pub(crate) fn of(stream: TcpStream) -> Socket {
        tune(&stream);
        Socket(stream)
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, into)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        piece: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, piece)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let stream = Pin::new(&mut self.0);
        match pieces {
            [piece] => stream.poll_write(cx, piece),
            _ => stream.poll_write_vectored(cx, pieces),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

//! Options of all TCP connections, inbound and outbound, and the inbound socket.

use crate::connections::Line;
use socket2::{SockRef, TcpKeepalive};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;

/// TCP keepalive: idle time before the first probe, and the interval between probes.
const SILENCE: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(15));

/// How many bytes are read and dropped from a client that still sends after its answer, so that it can read that
/// answer.
const MOST_IGNORED: usize = 4 << 20;
/// How long such bytes are read.
const LONGEST_LINGER: Duration = Duration::from_secs(2);
/// The answer to HTTP on a port for TLS, in the words of kube-apiserver.
const NOT_TLS: &[u8] =
    b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";

/// Disables Nagle's algorithm and enables keepalive. Without keepalive, a silent tunnel whose peer vanished would stay
/// open for years.
pub(crate) fn tune(stream: &TcpStream) {
    let alive = TcpKeepalive::new()
        .with_time(SILENCE.0)
        .with_interval(SILENCE.1);
    // Errors are ignored: a connection that has just ended reports that at the next read or write.
    let _ = stream.set_nodelay(true);
    let _ = SockRef::from(stream).set_tcp_keepalive(&alive);
}

/// A connection that a client opened.
///
/// TLS passes its records as lists, mostly of one slice. A single slice is sent with a plain write: the kernel takes
/// longer over a vectored write, about 5 % of the cost of sending one watch event.
///
/// It records on its line when the client stops reading, and counts the bytes a client sends before it is
/// authenticated.
pub(crate) struct Socket {
    stream: Option<TcpStream>,
    line: Arc<Line>,
    has_spoken: bool,
    is_blocked: bool,
}

impl Socket {
    /// Sets the options of an accepted connection.
    pub(crate) fn of(stream: TcpStream, line: Arc<Line>) -> Socket {
        tune(&stream);
        Socket {
            stream: Some(stream),
            line,
            has_spoken: false,
            is_blocked: false,
        }
    }

    /// Answers a client that sends HTTP to a port for TLS, which would otherwise see a connection that ends without a
    /// reason. Returns whether it is such a client.
    pub(crate) async fn refuses_plain_http(&mut self) -> io::Result<bool> {
        let mut first = [0];
        self.stream()?.peek(&mut first).await?;
        // HTTP begins with a method, TLS with the number 22.
        if !first[0].is_ascii_uppercase() {
            return Ok(false);
        }
        // Unread bytes would reset the connection, and the client would not see the answer.
        let mut ignored = [0; 4096];
        let _ = self.read(&mut ignored).await?;
        self.write_all(NOT_TLS).await?;
        self.shutdown().await?;
        Ok(true)
    }

    fn stream(&mut self) -> io::Result<Pin<&mut TcpStream>> {
        let stream = self.stream.as_mut().map(Pin::new);
        stream.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Records the result of a write.
    fn written(
        &mut self,
        cx: &Context<'_>,
        polled: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(count)) = &polled {
            self.line.moved(*count);
        }
        match &polled {
            Poll::Pending if self.line.is_cut_off() => {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            Poll::Pending => {
                self.is_blocked = true;
                self.line.blocked(cx);
            }
            Poll::Ready(_) if self.is_blocked => {
                self.is_blocked = false;
                self.line.unblocked();
            }
            Poll::Ready(_) => {}
        }
        polled
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.line.leave();
        if let Some(stream) = self.stream.take().filter(|_| self.line.is_to_linger()) {
            tokio::spawn(linger(stream));
        }
    }
}

/// Lets a client that is still sending read its answer: closing at once would reset the connection and lose the answer.
async fn linger(mut stream: TcpStream) {
    let read_out = async {
        stream.shutdown().await?;
        let mut ignored = [0; 4096];
        let mut left = MOST_IGNORED;
        while left > 0 {
            match stream.read(&mut ignored).await? {
                0 => break,
                count => left = left.saturating_sub(count),
            }
        }
        io::Result::Ok(())
    };
    let _ = tokio::time::timeout(LONGEST_LINGER, read_out).await;
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.line.poll_may_read(cx));
        let before = into.filled().len();
        ready!(self.stream()?.poll_read(cx, into))?;
        let count = into.filled().len() - before;
        self.line.has_read(count);
        if !self.has_spoken && count > 0 {
            self.has_spoken = true;
            self.line.speaks();
        }
        if !self.line.is_known() && !self.line.may_read(count) {
            return Poll::Ready(Err(io::ErrorKind::OutOfMemory.into()));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        piece: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.line.poll_move(cx));
        let polled = self.stream()?.poll_write(cx, piece);
        self.written(cx, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.line.poll_move(cx));
        let stream = self.stream()?;
        let polled = match pieces {
            [piece] => stream.poll_write(cx, piece),
            _ => stream.poll_write_vectored(cx, pieces),
        };
        self.written(cx, polled)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_shutdown(cx)
    }
}

//! What all TCP connections here have in common, whoever made them.

use crate::connections::Line;
use socket2::{SockRef, TcpKeepalive};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;

/// After so much silence a peer is asked whether it is still there, and then so often.
const SILENCE: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(15));

/// How much of what a client goes on sending is read and dropped, so that it gets to see its answer.
const MOST_IGNORED: usize = 4 << 20;
/// And for how long.
const LONGEST_LINGER: Duration = Duration::from_secs(2);

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

/// A connection that a client made to us.
///
/// TLS hands over its records as lists, mostly of one. One piece goes out as what it is: the kernel takes longer over a
/// list, for a single event of a watch a twentieth of all that sending it costs.
///
/// It notes on its line when the client takes nothing, and counts what a client sends before it is known.
pub(crate) struct Socket {
    stream: Option<TcpStream>,
    line: Arc<Line>,
    has_spoken: bool,
    is_blocked: bool,
}

impl Socket {
    /// Tunes a connection that was accepted.
    pub(crate) fn of(stream: TcpStream, line: Arc<Line>) -> Socket {
        tune(&stream);
        Socket {
            stream: Some(stream),
            line,
            has_spoken: false,
            is_blocked: false,
        }
    }

    fn stream(&mut self) -> io::Result<Pin<&mut TcpStream>> {
        let stream = self.stream.as_mut().map(Pin::new);
        stream.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Looks at what came of writing.
    fn written(
        &mut self,
        cx: &Context<'_>,
        polled: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
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

/// Lets a client that is still sending read the answer it was given: closing at once would reset the connection, and
/// the answer with it.
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
        let before = into.filled().len();
        ready!(self.stream()?.poll_read(cx, into))?;
        let count = into.filled().len() - before;
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
        let polled = self.stream()?.poll_write(cx, piece);
        self.written(cx, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
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

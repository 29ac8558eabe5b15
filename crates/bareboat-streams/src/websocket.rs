//! WebSockets of clients: the channels of exec and attach, and a byte stream for tunnels.

use bareboat_spdy::move_into;
use bytes::Bytes;
use futures_util::{Sink as _, Stream as _};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

/// The maximum length of a client's message.
const LONGEST: usize = 256 * 1024;
/// The maximum number of bytes in the write buffer of a socket.
const WRITE_BUFFER: usize = 128 * 1024;
/// The maximum length of a message that is sent.
pub(crate) const PIECE: usize = 32 * 1024;

/// Starts the server side of a WebSocket on an upgraded connection.
pub(crate) async fn start<S: AsyncRead + AsyncWrite + Unpin>(io: S) -> WebSocketStream<S> {
    let config = WebSocketConfig::default()
        .read_buffer_size(16 * 1024)
        .write_buffer_size(0)
        .max_write_buffer_size(WRITE_BUFFER + LONGEST)
        .max_message_size(Some(LONGEST))
        .max_frame_size(Some(LONGEST));
    WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await
}

/// Returns the message that ends a session.
pub(crate) fn goodbye() -> Message {
    Message::Close(Some(CloseFrame {
        code: CloseCode::Normal,
        reason: Utf8Bytes::default(),
    }))
}

/// A WebSocket as a byte stream: the payloads of its binary messages.
pub(crate) struct Tunnel<S> {
    socket: WebSocketStream<S>,
    rest: Bytes,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Tunnel<S> {
    pub(crate) async fn new(io: S) -> Tunnel<S> {
        Tunnel {
            socket: start(io).await,
            rest: Bytes::new(),
        }
    }
}

fn broken(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        Error::ConnectionClosed | Error::AlreadyClosed => io::ErrorKind::BrokenPipe.into(),
        other => io::Error::other(other),
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Tunnel<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.rest.is_empty() {
            match ready!(Pin::new(&mut self.socket).poll_next(cx)) {
                Some(Ok(Message::Binary(bytes))) => self.rest = bytes,
                Some(Ok(Message::Text(_))) => {
                    return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
                }
                Some(Ok(Message::Close(_))) | None => return Poll::Ready(Ok(())),
                Some(Ok(_)) => {}
                Some(Err(Error::ConnectionClosed)) => return Poll::Ready(Ok(())),
                Some(Err(error)) => return Poll::Ready(Err(broken(error))),
            }
        }
        move_into(&mut self.rest, into);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Tunnel<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        // Earlier data is sent first, so that data does not accumulate.
        ready!(Pin::new(&mut self.socket).poll_flush(cx)).map_err(broken)?;
        ready!(Pin::new(&mut self.socket).poll_ready(cx)).map_err(broken)?;
        let piece = &bytes[..bytes.len().min(PIECE)];
        let message = Message::Binary(Bytes::copy_from_slice(piece));
        Pin::new(&mut self.socket)
            .start_send(message)
            .map_err(broken)?;
        Poll::Ready(Ok(piece.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx).map_err(broken)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match ready!(Pin::new(&mut self.socket).poll_close(cx)) {
            Ok(()) | Err(Error::ConnectionClosed | Error::AlreadyClosed) => Poll::Ready(Ok(())),
            Err(error) => Poll::Ready(Err(broken(error))),
        }
    }
}

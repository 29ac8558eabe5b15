//! One stream: its headers, what arrives, and what is sent.

use super::Shared;
use crate::SpdyError;
use crate::frame::{Frame, ResetCode};
use crate::headers::Headers;
use crate::pieces::move_into;
use bytes::Bytes;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, PollSender};

/// The longest data frame that is sent.
const PIECE: usize = 16 * 1024;

/// A stream of a connection.
#[derive(Debug)]
pub struct Stream {
    headers: Headers,
    reader: StreamReader,
    writer: StreamWriter,
}

impl Stream {
    pub(super) fn new(
        id: u32,
        headers: Headers,
        shared: Arc<Shared>,
        unread: mpsc::Receiver<Bytes>,
        dead: CancellationToken,
    ) -> Stream {
        Stream {
            headers,
            reader: StreamReader {
                unread,
                rest: Bytes::new(),
            },
            writer: StreamWriter {
                id,
                outgoing: PollSender::new(shared.outgoing.clone()),
                shared,
                dead,
                is_finished: false,
            },
        }
    }

    /// Returns the headers the stream was opened with.
    pub fn headers(&self) -> &Headers {
        &self.headers
    }

    /// Returns the two directions of the stream.
    pub fn split(self) -> (StreamReader, StreamWriter) {
        (self.reader, self.writer)
    }
}

/// The bytes that arrive on a stream.
#[derive(Debug)]
pub struct StreamReader {
    unread: mpsc::Receiver<Bytes>,
    rest: Bytes,
}

impl StreamReader {
    /// Waits for the next bytes; `None` after the last.
    pub async fn next(&mut self) -> Option<Bytes> {
        if !self.rest.is_empty() {
            return Some(std::mem::take(&mut self.rest));
        }
        self.unread.recv().await
    }
}

impl AsyncRead for StreamReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.rest.is_empty() {
            match std::task::ready!(self.unread.poll_recv(cx)) {
                Some(bytes) => self.rest = bytes,
                None => return Poll::Ready(Ok(())),
            }
        }
        move_into(&mut self.rest, into);
        Poll::Ready(Ok(()))
    }
}

/// Sends bytes on a stream. Dropping it ends its direction.
pub struct StreamWriter {
    id: u32,
    outgoing: PollSender<Frame>,
    shared: Arc<Shared>,
    dead: CancellationToken,
    is_finished: bool,
}

impl std::fmt::Debug for StreamWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamWriter")
            .field("id", &self.id)
            .finish()
    }
}

impl StreamWriter {
    fn is_closed(&self) -> bool {
        self.is_finished || self.dead.is_cancelled() || self.shared.closed.is_cancelled()
    }

    /// Sends bytes.
    pub async fn send(&mut self, mut data: Bytes) -> Result<(), SpdyError> {
        while !data.is_empty() {
            if self.is_closed() {
                return Err(SpdyError::Closed);
            }
            let piece = data.split_to(data.len().min(PIECE));
            let frame = Frame::Data {
                stream: self.id,
                data: piece,
                fin: false,
            };
            let sent = self.shared.outgoing.send(frame).await;
            sent.map_err(|_| SpdyError::Closed)?;
        }
        Ok(())
    }

    /// Sends the end of this direction.
    pub async fn finish(&mut self) -> Result<(), SpdyError> {
        if self.is_closed() {
            return Ok(());
        }
        self.is_finished = true;
        self.shared.finished(self.id);
        let sent = self.shared.outgoing.send(last(self.id)).await;
        sent.map_err(|_| SpdyError::Closed)
    }

    /// Ends both directions at once.
    pub async fn reset(&mut self, code: ResetCode) {
        if self.is_closed() {
            return;
        }
        self.is_finished = true;
        self.shared.remove(self.id);
        let stream = self.id;
        let _ = self
            .shared
            .outgoing
            .send(Frame::Reset { stream, code })
            .await;
    }

    /// Waits until the peer resets the stream, or the connection has ended.
    pub async fn dead(&self) {
        tokio::select! {
            () = self.dead.cancelled() => {}
            () = self.shared.closed.cancelled() => {}
        }
    }
}

fn last(stream: u32) -> Frame {
    Frame::Data {
        stream,
        data: Bytes::new(),
        fin: true,
    }
}

impl AsyncWrite for StreamWriter {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_closed() {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let ready = std::task::ready!(self.outgoing.poll_reserve(cx));
        let piece = &bytes[..bytes.len().min(PIECE)];
        let frame = Frame::Data {
            stream: self.id,
            data: Bytes::copy_from_slice(piece),
            fin: false,
        };
        let sent = ready.and_then(|()| self.outgoing.send_item(frame));
        Poll::Ready(match sent {
            Ok(()) => Ok(piece.len()),
            Err(_) => Err(io::ErrorKind::BrokenPipe.into()),
        })
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_closed() {
            return Poll::Ready(Ok(()));
        }
        let ready = std::task::ready!(self.outgoing.poll_reserve(cx));
        let frame = last(self.id);
        self.is_finished = true;
        self.shared.finished(self.id);
        let sent = ready.and_then(|()| self.outgoing.send_item(frame));
        Poll::Ready(sent.map_err(|_| io::ErrorKind::BrokenPipe.into()))
    }
}

impl Drop for StreamWriter {
    fn drop(&mut self) {
        if self.is_closed() {
            return;
        }
        self.shared.finished(self.id);
        if let Err(mpsc::error::TrySendError::Full(frame)) =
            self.shared.outgoing.try_send(last(self.id))
        {
            let outgoing = self.shared.outgoing.clone();
            // Outside of a runtime nothing would send it.
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                runtime.spawn(async move { outgoing.send(frame).await });
            }
        }
    }
}

//! Writes the frames of a connection. A future that is dropped loses nothing: what is encoded but not yet written stays
//! here, and is written first by the next one.

use super::{Role, Shared};
use crate::SpdyError;
use crate::frame::{Frame, encode};
use crate::headers::HeaderEncoder;
use bytes::BytesMut;
use std::time::Duration;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;

/// More frames are gathered for one write up to this size.
const BATCH: usize = 64 * 1024;

/// The direction of a connection that is written.
pub(super) struct Outgoing<W> {
    writer: W,
    frames: mpsc::Receiver<Frame>,
    encoder: HeaderEncoder,
    /// Encoded frames that are not written yet.
    unwritten: BytesMut,
}

impl<W: AsyncWrite + Unpin> Outgoing<W> {
    pub(super) fn new(writer: W, frames: mpsc::Receiver<Frame>) -> Outgoing<W> {
        Outgoing {
            writer,
            frames,
            encoder: HeaderEncoder::default(),
            unwritten: BytesMut::new(),
        }
    }

    /// Writes frames until this side ends the connection, then what is left and a GOAWAY.
    pub(super) async fn run(&mut self, shared: &Shared) -> Result<(), SpdyError> {
        tokio::select! {
            written = self.pump(shared) => return written,
            () = shared.closing.cancelled() => {}
        }
        let last = shared.table.lock().last;
        let goodbye = Frame::GoAway { last, code: 0 };
        self.end(shared, Some(goodbye)).await
    }

    /// Writes what is left after the peer has ended the connection.
    pub(super) async fn finish(&mut self, shared: &Shared) -> Result<(), SpdyError> {
        self.end(shared, None).await
    }

    async fn pump(&mut self, shared: &Shared) -> Result<(), SpdyError> {
        let mut ping = match shared.role {
            Role::Client => 1u32,
            Role::Server => 2,
        };
        let pause = shared.settings.ping.unwrap_or(Duration::MAX);
        loop {
            tokio::select! {
                biased;
                frame = self.frames.recv() => match frame {
                    Some(frame) => self.encode(&frame),
                    None => return Ok(()),
                },
                () = tokio::time::sleep(pause), if shared.settings.ping.is_some() => {
                    self.encode(&Frame::Ping(ping));
                    ping = ping.wrapping_add(2);
                }
            }
            while self.unwritten.len() < BATCH
                && let Ok(frame) = self.frames.try_recv()
            {
                self.encode(&frame);
            }
            self.write().await?;
        }
    }

    async fn end(&mut self, shared: &Shared, goodbye: Option<Frame>) -> Result<(), SpdyError> {
        self.frames.close();
        let ending = async {
            self.write().await?;
            while let Some(frame) = self.frames.recv().await {
                self.encode(&frame);
                self.write().await?;
            }
            if let Some(goodbye) = goodbye {
                self.encode(&goodbye);
                self.write().await?;
            }
            Ok(self.writer.shutdown().await?)
        };
        let ended = tokio::time::timeout(shared.settings.farewell, ending).await;
        ended.unwrap_or(Err(SpdyError::Timeout))
    }

    fn encode(&mut self, frame: &Frame) {
        encode(frame, &mut self.encoder, &mut self.unwritten);
    }

    async fn write(&mut self) -> Result<(), SpdyError> {
        self.writer.write_all_buf(&mut self.unwritten).await?;
        Ok(self.writer.flush().await?)
    }
}

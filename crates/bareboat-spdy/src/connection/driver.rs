//! The task of a connection: reads frames into streams, and ends both directions. Frames are written in `outgoing`.

use super::outgoing::Outgoing;
use super::{Entry, Role, Shared, Stream, UNREAD};
use crate::SpdyError;
use crate::frame::{Decoder, Frame, ResetCode};
use crate::headers::Headers;
use bytes::{BufMut as _, Bytes, BytesMut};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::io::{ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// How many bytes are read at once.
const BUFFER: usize = 16 * 1024;

/// Reads and writes the frames of a connection until it ends. Dropping it ends the connection at once.
pub struct Driver<S> {
    reader: ReadHalf<S>,
    outgoing: Outgoing<WriteHalf<S>>,
    shared: Arc<Shared>,
    accepted: mpsc::Sender<Stream>,
    /// Ends all streams, however the driver ends.
    guard: Guard,
}

impl<S> std::fmt::Debug for Driver<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Driver")
    }
}

struct Guard(Arc<Shared>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Driver<S> {
    pub(super) fn new(
        io: S,
        shared: Arc<Shared>,
        frames: mpsc::Receiver<Frame>,
        accepted: mpsc::Sender<Stream>,
    ) -> Driver<S> {
        let (reader, writer) = tokio::io::split(io);
        Driver {
            reader,
            outgoing: Outgoing::new(writer, frames),
            guard: Guard(shared.clone()),
            shared,
            accepted,
        }
    }

    /// Runs the connection until either side ends it.
    pub async fn run(self) -> Result<(), SpdyError> {
        let Driver {
            mut reader,
            mut outgoing,
            shared,
            accepted,
            guard: _guard,
        } = self;
        let reading = read(&mut reader, &shared, &accepted);
        tokio::pin!(reading);
        tokio::select! {
            read = &mut reading => {
                // Answers that are complete are still sent, such as the last bytes before the peer's GOAWAY.
                shared.close();
                let _ = outgoing.finish(&shared).await;
                read
            }
            written = outgoing.run(&shared) => {
                // A peer that closes without reading everything makes writes fail. What it sent before is still read.
                if let Err(SpdyError::Io(_)) = written {
                    let _ = tokio::time::timeout(shared.settings.farewell, reading).await;
                }
                written
            }
        }
    }
}

async fn read<R: AsyncRead + Unpin>(
    reader: &mut R,
    shared: &Arc<Shared>,
    accepted: &mpsc::Sender<Stream>,
) -> Result<(), SpdyError> {
    let mut decoder = Decoder::default();
    let mut buffer = BytesMut::new();
    loop {
        while let Some(frame) = decoder.next(&mut buffer)? {
            take(frame, shared, accepted).await?;
        }
        let is_idle = {
            let table = shared.table.lock();
            table.is_going_away && table.streams.is_empty()
        };
        if is_idle {
            return Ok(());
        }
        buffer.reserve(BUFFER);
        if reader.read_buf(&mut (&mut buffer).limit(BUFFER)).await? == 0 {
            return Ok(());
        }
    }
}

/// Processes one frame. A stream whose reader is slow delays all frames after it.
async fn take(
    frame: Frame,
    shared: &Arc<Shared>,
    accepted: &mpsc::Sender<Stream>,
) -> Result<(), SpdyError> {
    match frame {
        Frame::SynStream {
            stream,
            headers,
            fin,
            unidirectional,
        } => {
            let opened = Opened {
                stream,
                headers,
                fin,
                unidirectional,
            };
            accept(opened, shared, accepted).await?;
        }
        Frame::SynReply {
            stream,
            headers,
            fin,
        } => {
            let reply = {
                let mut table = shared.table.lock();
                let entry = table.streams.get_mut(&stream);
                entry.and_then(|entry| entry.reply.take())
            };
            if let Some(reply) = reply {
                let _ = reply.send(Ok(headers));
            }
            if fin {
                shared.ended(stream);
            }
        }
        Frame::Reset { stream, code } => {
            if let Some(entry) = shared.remove(stream)
                && let Some(reply) = entry.reply
            {
                let _ = reply.send(Err(SpdyError::Reset(code)));
            }
        }
        Frame::Headers { stream, fin, .. } => {
            if fin {
                shared.ended(stream);
            }
        }
        Frame::Data { stream, data, fin } => deliver(stream, data, fin, shared).await,
        Frame::Ping(id) => {
            // Answers to pings of this side are not sent back.
            let own = match shared.role {
                Role::Client => 1,
                Role::Server => 0,
            };
            if id & 1 != own {
                let _ = shared.outgoing.send(Frame::Ping(id)).await;
            }
        }
        Frame::GoAway { .. } => shared.table.lock().is_going_away = true,
        Frame::Ignored => {}
    }
    Ok(())
}

async fn deliver(stream: u32, data: Bytes, fin: bool, shared: &Shared) {
    let found = {
        let table = shared.table.lock();
        let entry = table.streams.get(&stream);
        entry.and_then(|entry| Some((entry.data.clone()?, entry.dead.clone())))
    };
    if let Some((sender, dead)) = found
        && !data.is_empty()
    {
        tokio::select! {
            // The stream has no reader, so the bytes are dropped.
            _ = sender.send(data) => {}
            () = dead.cancelled() => {}
        }
    }
    if fin {
        shared.ended(stream);
    }
}

/// A stream that the peer opens.
struct Opened {
    stream: u32,
    headers: Headers,
    fin: bool,
    unidirectional: bool,
}

async fn accept(
    opened: Opened,
    shared: &Arc<Shared>,
    accepted: &mpsc::Sender<Stream>,
) -> Result<(), SpdyError> {
    let id = opened.stream;
    let (data, unread) = mpsc::channel::<Bytes>(UNREAD);
    let dead = CancellationToken::new();
    let refused = {
        let mut table = shared.table.lock();
        let is_odd = id & 1 == 1;
        if is_odd != (shared.role == Role::Server) || id <= table.last || id == 0 {
            return Err(SpdyError::Protocol(
                "a stream has an ID that is not allowed",
            ));
        }
        table.last = id;
        let is_full = table.streams.len() >= shared.settings.most_streams;
        if !is_full {
            let entry = Entry {
                data: (!opened.fin).then_some(data),
                reply: None,
                is_finished: opened.unidirectional,
                dead: dead.clone(),
            };
            table.streams.insert(id, entry);
        }
        is_full
    };
    let answer = match refused {
        true => Frame::Reset {
            stream: id,
            code: ResetCode::Refused,
        },
        false => Frame::SynReply {
            stream: id,
            headers: Headers::default(),
            fin: false,
        },
    };
    let _ = shared.outgoing.send(answer).await;
    if !refused {
        let stream = Stream::new(id, opened.headers, shared.clone(), unread, dead);
        // Without a receiver the stream is dropped, which ends it.
        let _ = accepted.send(stream).await;
    }
    Ok(())
}

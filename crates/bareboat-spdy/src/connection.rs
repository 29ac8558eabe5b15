//! Streams over one connection: opening, accepting, and the task that reads and writes frames.

mod driver;
mod outgoing;
mod stream;

pub use driver::Driver;
pub use stream::{Stream, StreamReader, StreamWriter};

use crate::SpdyError;
use crate::frame::Frame;
use crate::headers::Headers;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// How many frames wait to be written. Data frames are short, see `stream::PIECE`.
const OUTGOING: usize = 8;
/// How many pieces of one stream wait to be read.
const UNREAD: usize = 4;
/// How many streams wait to be accepted.
const UNACCEPTED: usize = 16;

/// The side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The side that asked for the upgrade; its streams have odd IDs.
    Client,
    /// The side that accepted the upgrade; its streams have even IDs.
    Server,
}

/// Limits of a connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// How many streams the peer may have open.
    pub most_streams: usize,
    /// How often a ping is sent; `None` sends none.
    pub ping: Option<Duration>,
    /// How long the peer may take to accept a stream.
    pub open_timeout: Duration,
    /// How long the last frames may take after either side has ended the connection.
    pub farewell: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            most_streams: 256,
            ping: None,
            open_timeout: Duration::from_secs(30),
            farewell: Duration::from_secs(5),
        }
    }
}

impl Settings {
    /// Sends pings at this interval.
    #[must_use]
    pub fn ping(mut self, interval: Duration) -> Settings {
        self.ping = Some(interval);
        self
    }
}

/// A stream in the table.
struct Entry {
    /// Takes what arrives; `None` after the peer's last byte.
    data: Option<mpsc::Sender<Bytes>>,
    /// Waits for the peer's answer to an opened stream.
    reply: Option<oneshot::Sender<Result<Headers, SpdyError>>>,
    /// Whether this side has sent its last byte.
    is_finished: bool,
    /// Ends both directions.
    dead: CancellationToken,
}

impl Entry {
    fn is_over(&self) -> bool {
        self.data.is_none() && self.is_finished
    }
}

struct Table {
    streams: HashMap<u32, Entry>,
    /// The ID of the next stream this side opens.
    next: u32,
    /// The last stream that the peer opened.
    last: u32,
    /// Whether the peer accepts no more streams.
    is_going_away: bool,
}

struct Shared {
    table: Mutex<Table>,
    outgoing: mpsc::Sender<Frame>,
    /// This side wants to end the connection.
    closing: CancellationToken,
    /// The connection has ended.
    closed: CancellationToken,
    role: Role,
    settings: Settings,
}

impl Shared {
    /// Removes a stream from the table, and ends its readers and writers.
    fn remove(&self, id: u32) -> Option<Entry> {
        let entry = self.table.lock().streams.remove(&id)?;
        entry.dead.cancel();
        Some(entry)
    }

    /// Notes that this side has sent its last byte.
    fn finished(&self, id: u32) {
        let mut table = self.table.lock();
        if let Some(entry) = table.streams.get_mut(&id) {
            entry.is_finished = true;
            if entry.is_over() {
                table.streams.remove(&id);
            }
        }
    }

    /// Notes that the peer has sent its last byte.
    fn ended(&self, id: u32) {
        let mut table = self.table.lock();
        if let Some(entry) = table.streams.get_mut(&id) {
            entry.data = None;
            if entry.is_over() {
                table.streams.remove(&id);
            }
        }
    }

    /// Ends everything.
    fn close(&self) {
        self.closed.cancel();
        let mut table = self.table.lock();
        for (_, entry) in table.streams.drain() {
            entry.dead.cancel();
            if let Some(reply) = entry.reply {
                let _ = reply.send(Err(SpdyError::Closed));
            }
        }
    }
}

/// A connection. Its [`Driver`] must be polled for anything to happen.
#[derive(Clone)]
pub struct Connection {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connection")
    }
}

/// The streams that the peer opens.
#[derive(Debug)]
pub struct Incoming(mpsc::Receiver<Stream>);

impl Incoming {
    /// Waits for the next stream, which is accepted already; `None` when the connection has ended.
    pub async fn next(&mut self) -> Option<Stream> {
        self.0.recv().await
    }
}

impl Connection {
    /// Starts a connection on an upgraded one.
    pub fn new<S>(io: S, role: Role, settings: Settings) -> (Connection, Incoming, Driver<S>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let (outgoing, frames) = mpsc::channel(OUTGOING);
        let (accepted, incoming) = mpsc::channel(UNACCEPTED);
        let shared = Arc::new(Shared {
            table: Mutex::new(Table {
                streams: HashMap::new(),
                next: match role {
                    Role::Client => 1,
                    Role::Server => 2,
                },
                last: 0,
                is_going_away: false,
            }),
            outgoing,
            closing: CancellationToken::new(),
            closed: CancellationToken::new(),
            role,
            settings,
        });
        let driver = Driver::new(io, shared.clone(), frames, accepted);
        (Connection { shared }, Incoming(incoming), driver)
    }

    /// Opens a stream, and waits until the peer accepts it.
    pub async fn open(&self, headers: Headers) -> Result<Stream, SpdyError> {
        let shared = &self.shared;
        let (data, unread) = mpsc::channel(UNREAD);
        let (reply, replied) = oneshot::channel();
        let dead = CancellationToken::new();
        let id = {
            let mut table = shared.table.lock();
            if shared.closed.is_cancelled() || table.is_going_away {
                return Err(SpdyError::Closed);
            }
            let id = table.next;
            table.next = id.checked_add(2).ok_or(SpdyError::Closed)?;
            let entry = Entry {
                data: Some(data),
                reply: Some(reply),
                is_finished: false,
                dead: dead.clone(),
            };
            table.streams.insert(id, entry);
            id
        };
        let frame = Frame::SynStream {
            stream: id,
            headers: headers.clone(),
            fin: false,
            unidirectional: false,
        };
        let stream = Stream::new(id, headers, shared.clone(), unread, dead);
        let opening = async {
            let sent = shared.outgoing.send(frame).await;
            sent.map_err(|_| SpdyError::Closed)?;
            replied.await.map_err(|_| SpdyError::Closed)?
        };
        match tokio::time::timeout(shared.settings.open_timeout, opening).await {
            Ok(answer) => answer.map(|_| stream),
            Err(_) => Err(SpdyError::Timeout),
        }
    }

    /// Ends the connection after everything that waits to be written.
    pub fn close(&self) {
        self.shared.closing.cancel();
    }

    /// Waits until the connection has ended.
    pub async fn closed(&self) {
        self.shared.closed.cancelled().await;
    }
}

#[cfg(test)]
mod tests;

//! Sessions: connections with one job each, what is checked when a connection opens, and how a lost connection is
//! replaced.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bareboat_storage::{BackendError, Mark};
use parking_lot::{Mutex, MutexGuard};

use crate::channel::Channel;
use crate::engine::Inner;
use crate::error::{CallError, EtcdError, Meaning, read_failed, unreachable};
use crate::layout::{self, Meta};
use crate::messages::{Done, Found, Op, Range, txn};

/// An open connection.
pub(crate) struct Connection {
    /// The epoch of the log at the time when the connection was made.
    epoch: u64,
    pub(crate) channel: Channel,
}

/// A connection with one job, which is opened again after it was lost.
#[derive(Default)]
pub(crate) struct Session {
    held: Mutex<Option<Connection>>,
    /// Whether a connection was opened whose loss is not counted yet.
    connected: AtomicBool,
}

/// The error of a read: of the connection, or of the data.
pub(crate) enum ReadError {
    Call(CallError),
    /// The requested revision is compacted.
    Compacted,
    Log(BackendError),
}

impl From<CallError> for ReadError {
    fn from(error: CallError) -> Self {
        match error.meaning() {
            Meaning::Compacted => Self::Compacted,
            _ => Self::Call(error),
        }
    }
}

impl From<BackendError> for ReadError {
    fn from(error: BackendError) -> Self {
        Self::Log(error)
    }
}

/// Returns the error for a log whose content this program cannot have written.
pub(crate) fn damaged(what: impl Into<String>) -> ReadError {
    ReadError::Log(BackendError::Failed(what.into().into()))
}

impl Session {
    /// Returns the connection, or opens one. A connection from an earlier epoch is dropped, because it may lead to a
    /// cluster that was replaced.
    pub(crate) fn get(
        &self,
        inner: &Arc<Inner>,
    ) -> Result<MutexGuard<'_, Option<Connection>>, BackendError> {
        let mut held = self.held.lock();
        let gone = |held: &Connection| held.channel.is_closed() || held.epoch < inner.seen_epoch();
        if held.as_ref().is_none_or(gone) {
            *held = None;
            inner.check_open()?;
            if self.connected.swap(false, Ordering::Relaxed) {
                inner.connections.lost();
            }
            let connection = inner.block(inner.connect());
            inner.connections.tried(&connection);
            self.connected.store(connection.is_ok(), Ordering::Relaxed);
            *held = Some(connection.map_err(unreachable)?);
        }
        Ok(held)
    }

    /// Runs a read on the connection.
    pub(crate) fn call<T>(
        &self,
        inner: &Arc<Inner>,
        read: impl AsyncFnOnce(&Channel) -> Result<T, ReadError>,
    ) -> Result<T, BackendError> {
        let mut held = self.get(inner)?;
        let Some(connection) = held.as_ref() else {
            return Err(BackendError::Unreachable("the store is closed".into()));
        };
        inner
            .block(read(&connection.channel))
            .map_err(|error| match error {
                ReadError::Call(error) => {
                    inner.lose(&mut held);
                    read_failed(error)
                }
                ReadError::Compacted => BackendError::Compacted {
                    floor: inner.floor.load(Ordering::Acquire),
                },
                ReadError::Log(error) => error,
            })
    }

    /// Drops the connection unless it is in use.
    pub(crate) fn close(&self) {
        if let Some(mut held) = self.held.try_lock() {
            *held = None;
        }
    }
}

/// The state of the log: its end, its floor, and the complete answer.
pub(crate) type End = (Mark, u64, Done);

impl Inner {
    /// Drops a connection that failed. The next connection goes to another member.
    pub(crate) fn lose(&self, held: &mut Option<Connection>) {
        *held = None;
        self.endpoint.fetch_add(1, Ordering::Relaxed);
    }

    /// Connects to a member. Tries all members in turn, beginning with the current one.
    pub(crate) async fn dial(&self) -> Result<Channel, EtcdError> {
        let endpoints = &self.address.endpoints;
        let start = self.endpoint.load(Ordering::Relaxed);
        let mut failed = EtcdError::Unsafe("the address names no member".into());
        for turn in 0..endpoints.len() {
            let at = start.wrapping_add(turn);
            match Channel::open(&self.address, &endpoints[at % endpoints.len()]).await {
                Ok(channel) => {
                    self.endpoint.store(at, Ordering::Relaxed);
                    return Ok(channel);
                }
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    /// Opens a connection, and checks whether it leads to the same cluster as before.
    async fn connect(&self) -> Result<Connection, EtcdError> {
        let channel = self.dial().await?;
        let refused = |error: BackendError| EtcdError::Refused(error.into());
        let read = self.ask(&channel, &[self.keys.meta()]).await;
        let read = read.map_err(|error| {
            self.endpoint.fetch_add(1, Ordering::Relaxed);
            match error {
                ReadError::Call(error) => EtcdError::Refused(error.into()),
                ReadError::Log(error) => refused(error),
                ReadError::Compacted => EtcdError::Unsafe("the store is compacted".into()),
            }
        });
        let (mark, floor, mut done) = read?;
        let meta = done.take(2);
        let Some(meta) = meta.first().and_then(|found| parse_meta(&found.value)) else {
            return Err(EtcdError::Unsafe(
                "the cluster no longer has a store under this prefix".into(),
            ));
        };
        let mut epoch = mark.epoch;
        let cluster = cluster_name(done.header.cluster);
        if meta.cluster != cluster {
            tracing::warn!("the cluster was restored: clients must list again");
            let beyond = self.known().last;
            let begun = self.begin_epoch(&channel, mark, beyond, "restore", meta);
            let begun = begun
                .await
                .map_err(|error| EtcdError::Refused(error.into()))?;
            epoch = begun;
        }
        self.learn(&Mark { epoch, ..mark }, floor)
            .map_err(refused)?;
        Ok(Connection { epoch, channel })
    }

    /// Reads the end of the log and the floor. The answer includes every write that was acknowledged before. The
    /// operations `others` are part of the same transaction; their answers begin with the third.
    pub(crate) async fn ask(
        &self,
        channel: &Channel,
        others: &[Vec<u8>],
    ) -> Result<End, ReadError> {
        let ranges = others.iter().cloned().map(Range::one);
        self.ask_ranges(channel, ranges.collect()).await
    }

    pub(crate) async fn ask_ranges(
        &self,
        channel: &Channel,
        others: Vec<Range>,
    ) -> Result<End, ReadError> {
        let mut ops = vec![
            Op::Range(Range::one(self.keys.tail())),
            Op::Range(Range::one(self.keys.floor())),
        ];
        ops.extend(others.into_iter().map(Op::Range));
        let done = channel.txn(txn(&[], &ops, &[])).await?;
        let (mark, floor) = end_of(&done.parts).ok_or_else(|| {
            let why = "the cluster no longer has a store under this prefix";
            ReadError::Log(BackendError::Unreachable(why.into()))
        })?;
        Ok((mark, floor, done))
    }

    /// Reads and stores the end of the log and the floor.
    pub(crate) async fn end(&self, channel: &Channel) -> Result<End, ReadError> {
        let end = self.ask(channel, &[]).await?;
        self.learn(&end.0, end.1)?;
        Ok(end)
    }
}

/// Returns the end of the log and the floor from the first two answers of a transaction.
pub(crate) fn end_of(parts: &[Found]) -> Option<(Mark, u64)> {
    let value = |part: usize| Some(&parts.get(part)?.first()?.value);
    let floor = std::str::from_utf8(value(1)?).ok()?.parse().ok()?;
    Some((layout::mark(value(0)?)?, floor))
}

pub(crate) fn parse_meta(value: &[u8]) -> Option<Meta> {
    serde_json::from_slice(value).ok()
}

/// Returns the id of a cluster as etcd prints it.
pub(crate) fn cluster_name(id: u64) -> String {
    format!("{id:x}")
}

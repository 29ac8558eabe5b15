//! Appends. Each batch is one transaction, which is repeated under the id of the batch when the answer is lost.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bareboat_storage::{Appended, BackendError, Batch, Decide, Mark, Tail};

use crate::channel::Channel;
use crate::engine::{Inner, now};
use crate::error::{CallError, Meaning};
use crate::fetch::Stored;
use crate::layout::{Row, json, mark_text, stored};
use crate::messages::{Compare, Op, Range, txn};
use crate::session::ReadError;

/// The pause between two attempts to reach the cluster.
const PAUSE: Duration = Duration::from_millis(100);

/// The result of a transaction.
enum Answer {
    /// The batch was added.
    Done,
    /// The batch was already in the log, and ends at this mark.
    Found(Mark),
    Moved,
}

impl Inner {
    pub(crate) fn append(
        self: &Arc<Self>,
        base: &Mark,
        batch: &Batch,
    ) -> Result<Appended, BackendError> {
        *self.writer_id.lock() = batch.writer;
        if let Some(moved) = self.behind(base)? {
            return Ok(Appended::Moved(moved));
        }
        let end = batch.end(base);
        let message = self.message(base, batch, &end);
        let deadline = Instant::now() + self.options.patience;
        // Whether the cluster may have received the batch.
        let mut sent = false;
        loop {
            let lost: BackendError = match self.writer.get(self) {
                Err(error) => error,
                Ok(mut held) => {
                    let Some(connection) = held.as_ref() else {
                        continue;
                    };
                    let again = std::mem::replace(&mut sent, true);
                    let channel = &connection.channel;
                    let asked = Instant::now();
                    let tried = self.block(self.try_append(channel, message.clone(), batch.id));
                    match tried {
                        Ok(Answer::Done) => {
                            self.commits.note(asked.elapsed());
                            self.set_known(end);
                            return Ok(Appended::Done(end));
                        }
                        Ok(Answer::Found(end)) => {
                            self.set_known(end);
                            return Ok(Appended::Done(end));
                        }
                        Ok(Answer::Moved) => match self.block(self.read_tail(channel, base)) {
                            Ok(tail) => return Ok(Appended::Moved(tail)),
                            Err(ReadError::Log(error)) => error,
                            Err(ReadError::Compacted) => return Ok(Appended::Moved(Tail::Reload)),
                            Err(ReadError::Call(error)) => {
                                self.lose(&mut held);
                                crate::error::read_failed(error)
                            }
                        },
                        Err(error) => match error.meaning() {
                            Meaning::Lost | Meaning::Compacted => {
                                self.lose(&mut held);
                                BackendError::Unreachable(Box::new(error))
                            }
                            Meaning::Again => BackendError::Unreachable(Box::new(error)),
                            // The first attempt may still arrive, or may already be in the log.
                            Meaning::Full if again => BackendError::Unreachable(Box::new(error)),
                            Meaning::Full => return Err(BackendError::Full(Box::new(error))),
                            Meaning::TooLarge => {
                                return Err(BackendError::Full(Box::new(TooLarge(error))));
                            }
                            Meaning::Failed => return Err(BackendError::Failed(Box::new(error))),
                        },
                    }
                }
            };
            if !matches!(lost, BackendError::Unreachable(_)) {
                return Err(lost);
            }
            if Instant::now() >= deadline || self.is_closed() {
                return Err(match (sent, lost) {
                    (true, BackendError::Unreachable(why)) => BackendError::Unknown(why),
                    (_, lost) => lost,
                });
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Reads the missing batches if other servers are known to have written. Without this read the transaction would fail, and
    /// a failed transaction still sends all its bytes through the whole cluster.
    fn behind(self: &Arc<Self>, base: &Mark) -> Result<Option<Tail>, BackendError> {
        if self.heard.last() <= base.last {
            return Ok(None);
        }
        match self.tail(base) {
            Ok(Tail::Batches { batches, .. }) if batches.is_empty() => Ok(None),
            Ok(tail) => Ok(Some(tail)),
            // The append itself waits for the cluster.
            Err(BackendError::Unreachable(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Appends the batch that `decide` returns. etcd has no lock to hold. If other servers have written, this store
    /// waits for a short random time, so that the stores do not stay in step.
    pub(crate) fn append_held(
        self: &Arc<Self>,
        base: &Mark,
        decide: &mut Decide<'_>,
    ) -> Result<Option<Appended>, BackendError> {
        let begun = Instant::now();
        let deadline = begun + self.options.patience;
        let tail = loop {
            match self.tail(base) {
                Err(BackendError::Unreachable(_))
                    if Instant::now() < deadline && !self.is_closed() =>
                {
                    std::thread::sleep(PAUSE);
                }
                tail => break tail?,
            }
        };
        if matches!(&tail, Tail::Batches { batches, .. } if !batches.is_empty()) {
            let trip = begun.elapsed().min(Duration::from_millis(20));
            let share = uuid::Uuid::new_v4().as_u128() as u32 % 200;
            std::thread::sleep(trip * share / 100);
        }
        match decide(tail) {
            Some((base, batch)) => self.append(&base, &batch).map(Some),
            None => Ok(None),
        }
    }

    /// Encodes the transaction of `batch`. Its condition is that the log ends at `base`.
    fn message(&self, base: &Mark, batch: &Batch, end: &Mark) -> Vec<u8> {
        let row = Row::new(&batch.records, batch.id, batch.writer, end, now());
        let mut ops = Vec::with_capacity(batch.records.len() + 2);
        for (record, item) in batch.records.iter().zip(&row.records) {
            let key = match item.inner {
                true => self.keys.inner(record.revision),
                false => self.keys.at(&item.path),
            };
            match &record.value {
                Some(value) => ops.push(Op::Put(key, stored(record, value))),
                None if item.inner => {}
                None => ops.push(Op::Delete(key)),
            }
        }
        let (own, tail) = (self.keys.row(row.first), self.keys.tail());
        ops.push(Op::Put(own.clone(), json(&row)));
        ops.push(Op::Put(tail.clone(), mark_text(end).into_bytes()));
        let expected = mark_text(base);
        let compare = [Compare::Value(&tail, expected.as_bytes())];
        txn(&compare, &ops, &[Op::Range(Range::one(own))])
    }

    async fn try_append(
        &self,
        channel: &Channel,
        message: Vec<u8>,
        id: u128,
    ) -> Result<Answer, CallError> {
        let mut done = channel.txn(message).await?;
        if done.succeeded {
            return Ok(Answer::Done);
        }
        let row = done.take(0);
        let row = row.first().and_then(|pair| Stored::parse(pair).ok());
        let own = row.filter(|stored| stored.row.is(id));
        // Use the stored mark: a value that is encrypted again has other bytes.
        Ok(match own.and_then(|stored| stored.row.end()) {
            Some(end) => Answer::Found(end),
            None => Answer::Moved,
        })
    }
}

/// The error for a batch that etcd refuses because of its settings.
#[derive(Debug, thiserror::Error)]
#[error(
    "a batch is larger than the --max-request-bytes or --max-txn-ops of etcd, which must not be below their defaults"
)]
struct TooLarge(#[source] CallError);

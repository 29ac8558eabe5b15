//! Appends batches, and reads the batches after a position in the log.

use std::sync::Arc;
use std::time::Instant;

use bareboat_storage::{Appended, BackendError, Batch, Decide, Mark, Record, Tail, Value};
use parking_lot::MutexGuard;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};
use uuid::Uuid;

use super::session::{Connection, digest_of, mark_of};
use super::{Inner, schema};
use crate::error::{Meaning, meaning, read_failed};

/// The session of the writer, in use.
type Held<'a> = MutexGuard<'a, Option<Connection>>;

/// What `append_v1` returned.
enum Answer {
    /// The batch was added.
    Done,
    /// The batch was in the log already.
    Found,
    Moved,
}

impl Inner {
    pub(super) fn append(
        self: &Arc<Self>,
        base: &Mark,
        batch: &Batch,
    ) -> Result<Appended, BackendError> {
        self.append_from(base, batch, false)
    }

    /// Appends; `sent` says whether the database may have received the batch.
    fn append_from(
        self: &Arc<Self>,
        base: &Mark,
        batch: &Batch,
        mut sent: bool,
    ) -> Result<Appended, BackendError> {
        *self.writer_id.lock() = batch.writer;
        let end = batch.end(base);
        let deadline = Instant::now() + self.options.patience;
        loop {
            let lost: BackendError = match self.writer.get(self) {
                Err(error) => error,
                Ok(mut held) => {
                    let Some(connection) = held.as_ref() else {
                        continue;
                    };
                    let again = std::mem::replace(&mut sent, true);
                    match self.block(self.try_append(connection, base, batch, &end)) {
                        Ok(Answer::Done) => {
                            *self.known.lock() = end;
                            return Ok(Appended::Done(end));
                        }
                        Ok(Answer::Found) => {
                            match self.block(self.settle(connection, base, batch)) {
                                Ok(Some(end)) => {
                                    *self.known.lock() = end;
                                    return Ok(Appended::Done(end));
                                }
                                // Compacted since.
                                Ok(None) => continue,
                                Err(error) => {
                                    *held = None;
                                    read_failed(error)
                                }
                            }
                        }
                        Ok(Answer::Moved) => match self.block(self.read_tail(connection, base)) {
                            Ok(tail) => return Ok(Appended::Moved(tail)),
                            Err(error) => self.lost(&mut held, error),
                        },
                        Err(error) => match meaning(&error) {
                            Meaning::Lost => {
                                *held = None;
                                BackendError::Unreachable(Box::new(error))
                            }
                            Meaning::Again => continue,
                            // The first try may still arrive, or is in the log.
                            Meaning::Full | Meaning::Busy if again => {
                                BackendError::Unreachable(Box::new(error))
                            }
                            Meaning::Full => return Err(BackendError::Full(Box::new(error))),
                            Meaning::Busy => return Err(BackendError::Busy(Box::new(error))),
                            Meaning::Exists => {
                                tracing::error!(%error, "the log has a batch that it should not have");
                                let tail = self.block(self.read_tail(connection, base));
                                return tail
                                    .map(Appended::Moved)
                                    .map_err(|error| self.lost(&mut held, error));
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
            std::thread::sleep(super::PAUSE);
        }
    }

    fn lost(
        &self,
        held: &mut Option<Connection>,
        error: Result<Error, BackendError>,
    ) -> BackendError {
        match error {
            Ok(error) => {
                *held = None;
                read_failed(error)
            }
            Err(error) => error,
        }
    }

    async fn try_append(
        &self,
        connection: &Connection,
        base: &Mark,
        batch: &Batch,
        end: &Mark,
    ) -> Result<Answer, Error> {
        let records = &batch.records;
        let prevs: Vec<i64> = records.iter().map(|record| record.prev as i64).collect();
        let clusters: Vec<&str> = records.iter().map(|record| &*record.cluster).collect();
        let resources: Vec<&str> = records.iter().map(|record| &*record.resource).collect();
        let keys: Vec<&str> = records.iter().map(|record| &*record.key).collect();
        let actors: Vec<Option<&str>> = records
            .iter()
            .map(|record| record.actor.as_deref())
            .collect();
        let values: Vec<Option<bytes::Bytes>> = records
            .iter()
            .map(|record| record.value.as_ref().map(Value::to_bytes))
            .collect();
        let values: Vec<Option<&[u8]>> = values.iter().map(|value| value.as_deref()).collect();
        let size = |record: &Record| {
            let value = record.value.as_ref().map_or(0, Value::len);
            (record.key.len() + value) as i64
        };
        let size: i64 = records.iter().map(size).sum();
        let answer = connection
            .client
            .query_one(
                &connection.append,
                &[
                    &self.key(),
                    &self.channel(),
                    &(base.last as i64),
                    &&base.digest.0[..],
                    &(base.epoch as i64),
                    &Uuid::from_u128(batch.id),
                    &Uuid::from_u128(batch.writer),
                    &&end.digest.0[..],
                    &size,
                    &prevs,
                    &clusters,
                    &resources,
                    &keys,
                    &actors,
                    &values,
                ],
            )
            .await?;
        Ok(match answer.get::<_, i64>(0) {
            0 => Answer::Done,
            -3 => Answer::Found,
            // The log is longer, or has another epoch or history: the tail shows which.
            _ => Answer::Moved,
        })
    }

    /// Writes something after a batch whose first answer was lost. A commit whose wait for a synchronous standby was cut
    /// short is only on this server; the confirmation of a later one covers it.
    ///
    /// Returns the place after the batch as it is stored: a value that is encrypted again is other bytes.
    async fn settle(
        &self,
        connection: &Connection,
        base: &Mark,
        batch: &Batch,
    ) -> Result<Option<Mark>, Error> {
        let seen = "INSERT INTO replica (id, version, seen) VALUES ($1, $2, clock_timestamp())
            ON CONFLICT (id) DO UPDATE SET seen = excluded.seen";
        let id = Uuid::from_u128(*self.writer_id.lock());
        let version = env!("CARGO_PKG_VERSION");
        connection.client.execute(seen, &[&id, &version]).await?;
        let stored = "SELECT digest FROM batch WHERE first = $1 AND id = $2";
        let (first, id) = (base.last as i64 + 1, Uuid::from_u128(batch.id));
        let stored = connection.client.query_opt(stored, &[&first, &id]).await?;
        Ok(stored.map(|row| Mark {
            last: base.last + batch.records.len() as u64,
            epoch: base.epoch,
            digest: digest_of(row.get(0)),
        }))
    }

    /// Reads what follows `after`. The inner error is one of the connection.
    pub(super) async fn read_tail(
        &self,
        connection: &Connection,
        after: &Mark,
    ) -> Result<Tail, Result<Error, BackendError>> {
        let client = &connection.client;
        let from = after.last as i64;
        // Sent together. The second has a newer snapshot: a row that compaction took away implies a floor that it sees.
        let from: [&(dyn ToSql + Sync); 1] = [&from];
        let (rows, state) = tokio::join!(
            client.query(&connection.tail, &from),
            client.query_one(&connection.mark, &[]),
        );
        let (rows, state) = (rows.map_err(Ok)?, state.map_err(Ok)?);
        let newest = mark_of(&state);
        let floor = state.get::<_, i64>(4) as u64;
        self.learn(&newest, floor).map_err(Err)?;
        if newest.epoch != after.epoch {
            return Ok(Tail::Reload);
        }
        if newest.last < after.last || newest.last == after.last && newest.digest != after.digest {
            // The last known batch is gone: the database was restored.
            tracing::error!(
                known = after.last,
                found = newest.last,
                "the database lacks writes that were acknowledged"
            );
            let timeline = "SELECT timeline FROM meta";
            let timeline: String = client.query_one(timeline, &[]).await.map_err(Ok)?.get(0);
            let epoch = newest.epoch as i64;
            self.begin_epoch(client, epoch, after.last, "lost-tail", &timeline)
                .await
                .map_err(Ok)?;
            return Ok(Tail::Reload);
        }
        let Some((batches, end)) = batches(&rows, after) else {
            return Ok(Tail::Reload);
        };
        *self.known.lock() = end;
        Ok(Tail::Batches {
            more: end.last < newest.last,
            batches,
            end,
        })
    }

    pub(super) fn tail(self: &Arc<Self>, after: &Mark) -> Result<Tail, BackendError> {
        let mut held = self.writer.get(self)?;
        let Some(connection) = held.as_ref() else {
            return Err(super::closed());
        };
        match self.block(self.read_tail(connection, after)) {
            Ok(tail) => Ok(tail),
            Err(error) => Err(self.lost(&mut held, error)),
        }
    }

    /// Begins a transaction that keeps other writers out, and reads what follows `base`.
    fn hold(self: &Arc<Self>, base: &Mark) -> Result<(Held<'_>, Tail), BackendError> {
        let mut held = self.writer.get(self)?;
        let Some(connection) = held.as_ref() else {
            return Err(super::closed());
        };
        let lock = format!(
            "BEGIN; SELECT pg_advisory_xact_lock({}, {})",
            schema::LOCK,
            self.key()
        );
        let tail = self.block(async {
            let locked = connection.client.batch_execute(&lock).await;
            locked.map_err(Ok)?;
            self.read_tail(connection, base).await
        });
        match tail {
            Ok(tail) => Ok((held, tail)),
            Err(error) => {
                let error = self.lost(&mut held, error);
                // Ends the transaction with the connection.
                *held = None;
                Err(error)
            }
        }
    }

    pub(super) fn append_held(
        self: &Arc<Self>,
        base: &Mark,
        decide: &mut Decide<'_>,
    ) -> Result<Option<Appended>, BackendError> {
        let deadline = Instant::now() + self.options.patience;
        let (mut held, tail) = loop {
            match self.hold(base) {
                Ok(locked) => break locked,
                Err(BackendError::Unreachable(_))
                    if Instant::now() < deadline && !self.is_closed() =>
                {
                    std::thread::sleep(super::PAUSE);
                }
                Err(error) => return Err(error),
            }
        };
        let Some(connection) = held.as_ref() else {
            return Err(super::closed());
        };
        // Another epoch may have begun in this very transaction, and loading uses another session.
        if tail == Tail::Reload {
            let ended = self.block(connection.client.batch_execute("COMMIT"));
            if let Err(error) = ended {
                return Err(self.lost(&mut held, Ok(error)));
            }
            drop(held);
            return match decide(tail) {
                Some((base, batch)) => self.append(&base, &batch).map(Some),
                None => Ok(None),
            };
        }
        let Some((base, batch)) = decide(tail) else {
            let ended = self.block(connection.client.batch_execute("ROLLBACK"));
            if ended.is_err() {
                *held = None;
            }
            return Ok(None);
        };
        *self.writer_id.lock() = batch.writer;
        let end = batch.end(&base);
        let appended = self.block(async {
            let answer = self.try_append(connection, &base, &batch, &end).await?;
            connection.client.batch_execute("COMMIT").await?;
            Ok::<_, Error>(answer)
        });
        match appended {
            Ok(Answer::Done) => {
                *self.known.lock() = end;
                Ok(Some(Appended::Done(end)))
            }
            Ok(Answer::Found) => {
                drop(held);
                self.append_from(&base, &batch, true).map(Some)
            }
            Ok(Answer::Moved) => {
                drop(held);
                self.tail(&base).map(Appended::Moved).map(Some)
            }
            Err(error) => {
                *held = None;
                drop(held);
                match meaning(&error) {
                    Meaning::Full => Err(BackendError::Full(Box::new(error))),
                    Meaning::Failed => Err(BackendError::Failed(Box::new(error))),
                    // The same append without the lock shows whether it is in the log.
                    _ => self.append_from(&base, &batch, true).map(Some),
                }
            }
        }
    }
}

/// Batches with the records of each, and the place after them.
type Batches = (Vec<Vec<Record>>, Mark);

/// Joins rows to batches, and checks their digests; `None` if a row is missing or different.
fn batches(rows: &[Row], after: &Mark) -> Option<Batches> {
    let mut end = *after;
    let mut found = Vec::new();
    for rows in rows.chunk_by(|a, b| a.get::<_, i64>(0) == b.get::<_, i64>(0)) {
        let head = &rows[0];
        let (first, last): (i64, i64) = (head.get(0), head.get(1));
        let whole =
            rows.len() as i64 == last - first + 1 && head.get::<_, Option<i64>>(4) == Some(first);
        if first as u64 != end.last + 1 || !whole {
            return None;
        }
        let batch = Batch {
            id: 0,
            writer: 0,
            records: rows.iter().map(|row| record(row, 4)).collect(),
        };
        end = batch.end(&end);
        if end.last != last as u64 || end.digest != digest_of(head.get(2)) {
            return None;
        }
        found.push(batch.records);
    }
    Some((found, end))
}

/// The record in the columns `rev, prev, cluster, resource, key, actor, value` from column `at` on.
pub(super) fn record(row: &Row, at: usize) -> Record {
    Record {
        revision: row.get::<_, i64>(at) as u64,
        prev: row.get::<_, i64>(at + 1) as u64,
        cluster: row.get::<_, &str>(at + 2).into(),
        resource: row.get::<_, &str>(at + 3).into(),
        key: row.get::<_, &str>(at + 4).into(),
        actor: row.get::<_, Option<&str>>(at + 5).map(Into::into),
        value: value(row, at + 6),
    }
}

pub(super) fn value(row: &Row, at: usize) -> Option<Value> {
    let value: Option<&[u8]> = row.get(at);
    value.map(|value| Value::new(bytes::Bytes::copy_from_slice(value)))
}

//! Appends batches, and reads the batches that follow a mark.

use bareboat_storage::{Batch, Mark, Record, Tail, Value};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row};
use uuid::Uuid;

use super::session::{Connection, digest_of, mark_of};
use super::{Inner, schema};
use crate::dialect::{Answer, Dialect, Trouble, is_another_history};
use crate::engine::Engine;
use crate::error::SqlError;
use crate::session::Session;

impl Dialect for Inner {
    type Link = Connection;
    type Error = Error;

    fn engine(&self) -> &Engine {
        &self.engine
    }

    fn writer(&self) -> &Session<Connection> {
        &self.writer
    }

    async fn connect(&self) -> Result<Connection, SqlError> {
        self.open_session().await
    }

    async fn append(
        &self,
        connection: &mut Connection,
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
            // The log is longer, or has another epoch or another history: the tail shows which.
            _ => Answer::Moved,
        })
    }

    /// Writes a row after the batch. If the wait for a synchronous standby was interrupted, a commit is only on this
    /// server. The confirmation of a later commit includes it.
    async fn settle(
        &self,
        connection: &mut Connection,
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

    async fn read_tail(
        &self,
        connection: &mut Connection,
        after: &Mark,
    ) -> Result<Tail, Trouble<Error>> {
        let client = &connection.client;
        let from = after.last as i64;
        // Both queries are sent together. The second has a newer snapshot: if compaction deleted a row, it sees the new
        // floor.
        let from: [&(dyn ToSql + Sync); 1] = [&from];
        let (rows, state) = tokio::join!(
            client.query(&connection.tail, &from),
            client.query_one(&connection.mark, &[]),
        );
        let (rows, state) = (rows.map_err(Trouble::Link)?, state.map_err(Trouble::Link)?);
        let newest = mark_of(&state);
        let floor = state.get::<_, i64>(4) as u64;
        self.learn(&newest, floor).map_err(Trouble::Log)?;
        if newest.epoch != after.epoch {
            return Ok(Tail::Reload);
        }
        // The last known batch is missing: the database was restored from a backup.
        let is_shorter = newest.last < after.last;
        if is_shorter || newest.last == after.last && newest.digest != after.digest {
            let lost = self.lost_tail(client, after, &newest).await;
            return lost.map_err(Trouble::Link);
        }
        let follows = batches(&rows, after);
        // A batch of another history may begin at or before the known end: then no row follows.
        let is_odd = (follows.as_ref()).is_none_or(|(batches, _)| batches.is_empty());
        if is_odd && newest.last > after.last {
            let other = self.is_another_history(client, after).await;
            if other.map_err(Trouble::Link)? {
                let lost = self.lost_tail(client, after, &newest).await;
                return lost.map_err(Trouble::Link);
            }
        }
        let Some((batches, end)) = follows else {
            return Ok(Tail::Reload);
        };
        *self.known.lock() = end;
        Ok(Tail::Batches {
            more: end.last < newest.last,
            batches,
            end,
        })
    }

    async fn hold(&self, connection: &mut Connection) -> Result<(), Error> {
        let lock = format!(
            "BEGIN; SELECT pg_advisory_xact_lock({}, {})",
            schema::LOCK,
            self.key()
        );
        connection.client.batch_execute(&lock).await
    }

    async fn append_held(
        &self,
        connection: &mut Connection,
        base: &Mark,
        batch: &Batch,
        end: &Mark,
    ) -> Result<Answer, Error> {
        let answer = self.append(connection, base, batch, end).await?;
        connection.client.batch_execute("COMMIT").await?;
        Ok(answer)
    }

    async fn release(&self, connection: &mut Connection) -> Result<(), Error> {
        connection.client.batch_execute("COMMIT").await
    }
}

impl Inner {
    /// Returns whether the log has another batch at `at` than the known one.
    async fn is_another_history(&self, client: &Client, at: &Mark) -> Result<bool, Error> {
        let around = "SELECT last, digest FROM batch WHERE first <= $1 ORDER BY first DESC LIMIT 1";
        let found = client.query_opt(around, &[&(at.last as i64)]).await?;
        let around = found.map(|row| (row.get::<_, i64>(0) as u64, digest_of(row.get(1))));
        Ok(is_another_history(at, around))
    }

    /// Begins another epoch, because batches that were known to be in the log are missing.
    async fn lost_tail(&self, client: &Client, known: &Mark, found: &Mark) -> Result<Tail, Error> {
        tracing::error!(
            known = known.last,
            found = found.last,
            "the database lacks writes that were acknowledged or seen"
        );
        let timeline = "SELECT timeline FROM meta";
        let timeline: String = client.query_one(timeline, &[]).await?.get(0);
        let epoch = found.epoch as i64;
        self.begin_epoch(client, epoch, known.last, "lost-tail", &timeline)
            .await?;
        Ok(Tail::Reload)
    }
}

/// Batches with their records, and the mark after the last batch.
type Batches = (Vec<Vec<Record>>, Mark);

/// Assigns rows to batches, and checks the digests. Returns `None` if something is missing or different.
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

/// Returns the record in the columns `rev, prev, cluster, resource, key, actor, value`, which begin at column `at`.
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

//! Appends: each append is a transaction that first locks the row of `meta`.
//!
//! The isolation level is READ COMMITTED, so statements after the lock see everything that was committed before it.
//! There are usually three round trips: the lock, the records, and the rest with the commit.

use bareboat_storage::{Batch, Mark, Record, Tail, Value};
use mysql_async::{Error, Params, Value as Column};
use uuid::Uuid;

use super::Inner;
use super::link::{Connection, silence};
use super::rows;
use super::schema::hex;
use super::session::MARK;
use crate::dialect::{Answer, Dialect, Trouble};
use crate::engine::Engine;
use crate::error::SqlError;
use crate::session::Session;

/// The maximum number of rows in one statement. There is a prepared statement for every number of rows up to `SMALL`,
/// and above that for every multiple of `SMALL`.
const ROWS: usize = 64;
const SMALL: usize = 16;

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
        link: &mut Connection,
        base: &Mark,
        batch: &Batch,
        end: &Mark,
    ) -> Result<Answer, Error> {
        let answer = async {
            match lock(link).await? == *base {
                true => insert(link, base, batch, end).await,
                false => look_for(link, base, batch).await,
            }
        };
        let answer = answer.await;
        if answer.is_err() {
            // A lock wait timeout rolls back only one statement.
            link.roll_back().await;
        }
        answer
    }

    async fn settle(
        &self,
        link: &mut Connection,
        base: &Mark,
        batch: &Batch,
    ) -> Result<Option<Mark>, Error> {
        self.flush(link).await?;
        let stored = "SELECT digest FROM batch WHERE first = ? AND id = ?";
        let id = batch.id.to_be_bytes();
        let stored = link.first(stored, (base.last + 1, &id[..])).await?;
        Ok(stored.map(|row| Mark {
            last: base.last + batch.records.len() as u64,
            epoch: base.epoch,
            digest: rows::digest(&row, 0),
        }))
    }

    async fn read_tail(&self, link: &mut Connection, after: &Mark) -> Result<Tail, Trouble<Error>> {
        self.what_follows(link, after).await
    }

    async fn hold(&self, link: &mut Connection) -> Result<(), Error> {
        let locked = lock(link).await;
        if locked.is_err() {
            link.roll_back().await;
        }
        locked.map(drop)
    }

    async fn append_held(
        &self,
        link: &mut Connection,
        base: &Mark,
        batch: &Batch,
        end: &Mark,
    ) -> Result<Answer, Error> {
        insert(link, base, batch, end).await
    }

    async fn release(&self, link: &mut Connection) -> Result<(), Error> {
        link.run(&ending(link, "COMMIT")).await.map(drop)
    }
}

/// Begins a transaction, and waits for the lock that all writers take. Returns the end of the log.
async fn lock(link: &mut Connection) -> Result<Mark, Error> {
    // MySQL has no timeout for idle transactions. This timeout ends the session.
    let limit = match link.server.is_mariadb {
        true => "",
        false => "SET SESSION wait_timeout = 2; ",
    };
    let lock = format!("{limit}START TRANSACTION; {MARK} FOR UPDATE");
    let row = link.run(&lock).await?;
    row.map(|row| rows::mark(&row)).ok_or_else(silence)
}

/// Returns the statements that end a transaction of `lock`: `end`, and the reset of the session's timeout.
fn ending(link: &Connection, end: &str) -> String {
    match link.server.is_mariadb {
        true => end.to_owned(),
        false => format!("{end}; SET SESSION wait_timeout = DEFAULT"),
    }
}

/// Looks whether `batch` is already in the log, and ends the transaction.
async fn look_for(link: &mut Connection, base: &Mark, batch: &Batch) -> Result<Answer, Error> {
    let found = "SELECT 1 FROM batch WHERE first = ? AND id = ?";
    let id = batch.id.to_be_bytes();
    let found = link.first(found, (base.last + 1, &id[..])).await?;
    link.run(&ending(link, "ROLLBACK")).await?;
    Ok(match found {
        Some(_) => Answer::Found,
        // The log is longer, or has another epoch or another history: the tail shows which.
        None => Answer::Moved,
    })
}

/// Writes `batch` under the lock, and commits.
async fn insert(
    link: &mut Connection,
    base: &Mark,
    batch: &Batch,
    end: &Mark,
) -> Result<Answer, Error> {
    let mut rest = &batch.records[..];
    while !rest.is_empty() {
        let (now, later) = rest.split_at(rows_at_once(rest, link.server.packet / 2));
        link.first(&statement(now.len()), parameters(now)).await?;
        rest = later;
    }
    let (id, writer) = (Uuid::from_u128(batch.id), Uuid::from_u128(batch.writer));
    let (first, last, epoch) = (base.last + 1, end.last, base.epoch);
    let digest = hex(&end.digest.0);
    let bytes: usize = batch.records.iter().map(size).sum();
    let finish = format!(
        "INSERT INTO batch (first, last, id, writer, epoch, digest, bytes, at)
            VALUES ({first}, {last}, x'{}', x'{}', {epoch}, x'{digest}', {bytes}, UTC_TIMESTAMP(6));
         UPDATE meta SET last = {last}, digest = x'{digest}' WHERE id = 1; {}",
        id.simple(),
        writer.simple(),
        ending(link, "COMMIT")
    );
    link.run(&finish).await?;
    Ok(Answer::Done)
}

fn size(record: &Record) -> usize {
    record.key.len() + record.value.as_ref().map_or(0, Value::len)
}

/// Returns how many of `records` fit into one statement of at most `bytes`; at least 1.
pub(super) fn rows_at_once(records: &[Record], bytes: usize) -> usize {
    const FIXED: usize = 1024;
    let mut left = bytes;
    let fits = |record: &&Record| {
        let needed = FIXED + size(record) + record.actor.as_ref().map_or(0, |actor| actor.len());
        let fits = needed <= left;
        left = left.saturating_sub(needed);
        fits
    };
    let most = records.iter().take(ROWS).take_while(fits).count().max(1);
    match most > SMALL {
        true => most - most % SMALL,
        false => most,
    }
}

pub(super) fn statement(rows: usize) -> String {
    let head = "INSERT INTO log (rev, prev, cluster, resource, `key`, actor, value) VALUES ";
    let row = "(?,?,?,?,?,?,?)";
    let mut statement = String::with_capacity(head.len() + rows * (row.len() + 1));
    statement.push_str(head);
    for at in 0..rows {
        if at > 0 {
            statement.push(',');
        }
        statement.push_str(row);
    }
    statement
}

pub(super) fn parameters(records: &[Record]) -> Params {
    let text = |text: &str| Column::Bytes(text.as_bytes().to_vec());
    let row = |record: &Record| {
        [
            Column::UInt(record.revision),
            Column::UInt(record.prev),
            text(&record.cluster),
            text(&record.resource),
            text(&record.key),
            record.actor.as_deref().map_or(Column::NULL, text),
            record.value.as_ref().map_or(Column::NULL, |value| {
                let (head, tail) = value.parts();
                Column::Bytes([head, tail].concat())
            }),
        ]
    };
    Params::Positional(records.iter().flat_map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(count: usize, len: usize) -> Vec<Record> {
        let record = |revision| Record {
            revision,
            prev: 0,
            cluster: "".into(),
            resource: "core/pods".into(),
            key: "a".into(),
            actor: None,
            value: Some(Value::new(vec![b'x'; len].into())),
        };
        (0..count as u64).map(record).collect()
    }

    #[test]
    fn few_statements_are_prepared_and_packets_are_not_too_large() {
        let at_once = |count, len, bytes| rows_at_once(&records(count, len), bytes);
        assert_eq!(at_once(1, 10, 1 << 20), 1);
        assert_eq!(at_once(16, 10, 1 << 20), 16);
        assert_eq!(at_once(31, 10, 1 << 20), 16);
        assert_eq!(at_once(1000, 10, 1 << 20), 64);
        assert_eq!(at_once(1000, 100 << 10, 1 << 20), 10);
        assert_eq!(at_once(3, 3 << 20, 1 << 20), 1);
        assert_eq!(statement(2).matches('?').count(), 14);
    }
}

//! Reads the batches that follow a mark of the log.

use std::sync::atomic::Ordering;

use bareboat_storage::{BackendError, Batch, Mark, Record, Tail};
use mysql_async::{Error, Row};

use super::Inner;
use super::link::{Connection, silence};
use super::rows::{self, digest, number};
use super::session::MARK;
use crate::dialect::{Trouble, is_another_history};
use crate::engine::closed;
use crate::error::{Failure as _, Meaning, read_failed};
use crate::session::Session;

const BATCHES: &str =
    "SELECT first, last, digest, bytes FROM batch WHERE first > ? ORDER BY first LIMIT 256";
const RECORDS: &str = "SELECT rev, prev, cluster, resource, `key`, actor, value FROM log
    WHERE rev > ? AND rev <= ? ORDER BY rev";
/// Selects the batch that contains a revision.
const AROUND: &str = "SELECT last, digest FROM batch WHERE first <= ? ORDER BY first DESC LIMIT 1";
/// The maximum number of value bytes that are read at once.
const BYTES: u64 = 8 << 20;

impl Inner {
    /// Runs an operation that is safe to repeat, and repeats it once if the connection was lost: a server that was
    /// restarted since the last use does not report it.
    pub(super) fn repeatable<T>(
        &self,
        session: &Session<Connection>,
        run: impl AsyncFn(&mut Connection) -> Result<T, Error>,
    ) -> Result<T, BackendError> {
        let mut again = true;
        loop {
            let mut held = session.get(self)?;
            let Some(link) = held.as_mut() else {
                return Err(closed());
            };
            match self.block(run(link)) {
                Ok(done) => return Ok(done),
                Err(error) => {
                    *held = None;
                    if !std::mem::take(&mut again) || error.meaning() != Meaning::Lost {
                        return Err(read_failed(error));
                    }
                }
            }
        }
    }

    /// Reads the end of the log.
    pub(super) fn mark(&self, session: &Session<Connection>) -> Result<Mark, BackendError> {
        let (mark, floor) = self.repeatable(session, async |link| newest(link).await)?;
        self.learn(&mark, floor)?;
        Ok(mark)
    }

    pub(super) async fn what_follows(
        &self,
        link: &mut Connection,
        after: &Mark,
    ) -> Result<Tail, Trouble<Error>> {
        let (end, floor) = newest(link).await.map_err(Trouble::Link)?;
        self.learn(&end, floor).map_err(Trouble::Log)?;
        if end == *after {
            *self.known.lock() = end;
            return Ok(Tail::empty(end));
        }
        if end.epoch != after.epoch {
            return Ok(Tail::Reload);
        }
        if end.last <= after.last {
            // The last known batch is missing: the database was restored from a backup.
            return self.lost_tail(link, after, end.epoch).await;
        }
        let (batches, records) = self
            .read_batches(link, after)
            .await
            .map_err(Trouble::Link)?;
        // If compaction deleted a row, the new floor is visible now. If the history was replaced, the new epoch is
        // visible now.
        let (end, floor) = newest(link).await.map_err(Trouble::Link)?;
        self.learn(&end, floor).map_err(Trouble::Log)?;
        if end.epoch != after.epoch {
            return Ok(Tail::Reload);
        }
        let Some((batches, reached)) = join(&batches, records, after) else {
            return match self.is_another_history(link, after).await {
                Ok(true) => self.lost_tail(link, after, end.epoch).await,
                Ok(false) => Ok(Tail::Reload),
                Err(error) => Err(Trouble::Link(error)),
            };
        };
        self.make_durable().map_err(Trouble::Log)?;
        self.poll.moved();
        *self.known.lock() = reached;
        Ok(Tail::Batches {
            more: reached.last < end.last,
            batches,
            end: reached,
        })
    }

    /// Reads the rows of several batches, and their records.
    async fn read_batches(
        &self,
        link: &mut Connection,
        after: &Mark,
    ) -> Result<(Vec<Row>, Vec<Record>), Error> {
        let mut batches = link.rows(BATCHES, (after.last,)).await?;
        let mut bytes = 0;
        batches.retain(|row| {
            let wanted = bytes < BYTES;
            bytes += number(row, 3);
            wanted
        });
        let last = batches.last().map_or(after.last, |row| number(row, 1));
        let mut records = Vec::new();
        link.each(RECORDS, (after.last, last), |mut row| {
            records.push(rows::record(&mut row));
            true
        })
        .await?;
        Ok((batches, records))
    }

    /// Returns whether the log has another batch at `at` than the known one.
    async fn is_another_history(&self, link: &mut Connection, at: &Mark) -> Result<bool, Error> {
        let found = link.first(AROUND, (at.last,)).await?;
        let around = found.map(|row| (number(&row, 0), digest(&row, 1)));
        Ok(is_another_history(at, around))
    }

    /// Begins another epoch, because batches that were known to be in the log are missing.
    async fn lost_tail(
        &self,
        link: &mut Connection,
        known: &Mark,
        epoch: u64,
    ) -> Result<Tail, Trouble<Error>> {
        tracing::error!(
            known = known.last,
            "the database lacks writes that were acknowledged or seen"
        );
        self.begin_epoch(link, epoch, known.last, "lost-tail")
            .await
            .map_err(Trouble::Link)?;
        Ok(Tail::Reload)
    }

    /// Makes everything durable that was read.
    ///
    /// InnoDB shows a commit to other sessions before its redo log is flushed. With a binary log, the commit is already
    /// in that log and is not lost. Without a binary log, this function makes a commit of its own, whose flush includes
    /// all earlier commits. It uses another session, because the current one may hold the lock.
    pub(super) fn make_durable(&self) -> Result<(), BackendError> {
        if self.has_binlog.load(Ordering::Acquire) {
            return Ok(());
        }
        self.repeatable(&self.look, async |link| self.flush(link).await)
    }

    /// Commits a small change, which flushes the redo log.
    pub(super) async fn flush(&self, link: &mut Connection) -> Result<(), Error> {
        let seen = "INSERT INTO replica (id, version, seen) VALUES (?, ?, UTC_TIMESTAMP(6))
            ON DUPLICATE KEY UPDATE seen = UTC_TIMESTAMP(6)";
        let id = self.id.to_be_bytes();
        link.first(seen, (&id[..], env!("CARGO_PKG_VERSION")))
            .await
            .map(drop)
    }
}

/// Returns the end of the log, and the floor.
pub(super) async fn newest(link: &mut Connection) -> Result<(Mark, u64), Error> {
    let row = link.first(MARK, ()).await?.ok_or_else(silence)?;
    Ok((rows::mark(&row), number(&row, 3)))
}

/// Assigns `records` to their batches, and checks the digests. Returns `None` if something is missing or different.
fn join(rows: &[Row], records: Vec<Record>, after: &Mark) -> Option<(Vec<Vec<Record>>, Mark)> {
    if rows.is_empty() {
        return None;
    }
    let mut end = *after;
    let mut records = records.into_iter().peekable();
    let mut found = Vec::with_capacity(rows.len());
    for row in rows {
        let (first, last) = (number(row, 0), number(row, 1));
        let mut own = Vec::new();
        while let Some(record) = records.next_if(|record| record.revision <= last) {
            own.push(record);
        }
        let whole = own.len() as u64 == last - first + 1;
        if first != end.last + 1 || !whole || own[0].revision != first {
            return None;
        }
        let batch = Batch {
            id: 0,
            writer: 0,
            records: own,
        };
        end = batch.end(&end);
        if end.last != last || end.digest != digest(row, 2) {
            return None;
        }
        found.push(batch.records);
    }
    Some((found, end))
}

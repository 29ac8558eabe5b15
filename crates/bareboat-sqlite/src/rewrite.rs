//! Replaces stored values in place, for example after a change of the encryption keys, and leaves no old value in the
//! file.
//!
//! Revisions stay the same, so clients notice nothing. All values are written in one transaction. Then the file is
//! rebuilt without free pages, and the write-ahead log is emptied.

use std::path::Path;
use std::time::{Duration, Instant};

use bareboat_storage::{BoxError, Chain, ChangeValue, Digest, Record, Rewritten, Value};
use rusqlite::{Connection, OptionalExtension};

use crate::checksum::{self, Header};
use crate::error::SqliteError;
use crate::lock::Lock;
use crate::read::Names;
use crate::{SqliteOptions, schema};

/// The number of rows that are read together.
const ROWS: usize = 256;

/// The reason why a file was not rewritten. The file is unchanged, unless only the removal of old values failed: then
/// all values are new, and free pages may contain old values.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RewriteError {
    /// The file cannot be used.
    #[error(transparent)]
    File(#[from] SqliteError),
    /// A value cannot be rewritten.
    #[error("revision {revision} ({resource} {key}) cannot be rewritten")]
    Value {
        /// The revision of the value.
        revision: u64,
        /// The resource of the value, such as `apps/deployments`.
        resource: String,
        /// The key of the value, `namespace/name` or `name`.
        key: String,
        /// The error of the function that changes values.
        #[source]
        source: BoxError,
    },
}

/// Passes every stored value to `change`, which returns a new value, or `None` to keep the value. Damaged values are
/// kept.
pub fn rewrite(
    path: impl AsRef<Path>,
    change: &mut ChangeValue<'_>,
) -> Result<Rewritten, RewriteError> {
    let path = path.as_ref();
    let _lock = Lock::take(path)?;
    let (mut connection, _) = schema::open(path, &SqliteOptions::default())?;
    let done = in_place(&mut connection, path, change)?;
    connection
        .close()
        .map_err(|(_, error)| SqliteError::at(path, error))?;
    Ok(done)
}

/// Rewrites the values of an open file, as [`rewrite`] does.
pub(crate) fn in_place(
    connection: &mut Connection,
    path: &Path,
    change: &mut ChangeValue<'_>,
) -> Result<Rewritten, RewriteError> {
    let at = |error| RewriteError::File(SqliteError::at(path, error));
    let transaction = connection.transaction().map_err(at)?;
    let done = values(&transaction, path, change)?;
    transaction.commit().map_err(at)?;
    forget(connection).map_err(at)?;
    Ok(done)
}

/// Passes every stored value to `look`, and writes nothing.
pub fn inspect(
    path: impl AsRef<Path>,
    look: &mut ChangeValue<'_>,
) -> Result<Rewritten, RewriteError> {
    let path = path.as_ref();
    let _lock = Lock::take(path)?;
    let (connection, _) = schema::open(path, &SqliteOptions::default())?;
    values(&connection, path, &mut |record| look(record).map(|_| None))
}

fn values(
    connection: &Connection,
    path: &Path,
    change: &mut ChangeValue<'_>,
) -> Result<Rewritten, RewriteError> {
    let at = |error| RewriteError::File(SqliteError::at(path, error));
    let names = Names::read(connection).map_err(at)?;
    let mut done = Rewritten::default();
    let mut after = i64::MIN;
    let mut batch = RunningBatch::default();
    loop {
        let rows = slice(connection, &names, after).map_err(at)?;
        let full = rows.len() == ROWS;
        for (mut record, sum, end) in rows {
            after = record.revision as i64;
            let inside = batch.first(connection, after).map_err(at)? <= after;
            let mut sum = sum;
            if record
                .value
                .as_ref()
                .is_some_and(|value| !value.is_damaged())
            {
                done.values += 1;
                let new = change(&record).map_err(|source| RewriteError::Value {
                    revision: record.revision,
                    resource: record.resource.to_string(),
                    key: record.key.to_string(),
                    source,
                })?;
                if let Some(value) = new {
                    sum = put(connection, &record, &value).map_err(at)?;
                    done.rewritten += 1;
                    batch.changed |= inside;
                    record.value = Some(value);
                }
            }
            if inside {
                batch.add(&record, sum);
            }
            if let Some(end) = end {
                batch.end(connection, after, end).map_err(at)?;
            }
        }
        if !full {
            return Ok(done);
        }
    }
}

/// The checksum and the digest of the batch that is being read. Both depend on the batch's records. A digest also
/// depends on the previous digest, so a changed value changes all later digests.
#[derive(Default)]
struct RunningBatch {
    /// The first revision of the batch, once it is known.
    first: Option<i64>,
    sums: checksum::Batch,
    chain: Option<Chain>,
    rows: i64,
    changed: bool,
    /// The digest of the previous batch.
    before: Digest,
    /// Whether the digest differs from the one before the rewrite.
    moved: bool,
}

impl RunningBatch {
    /// Returns the first revision of the next batch whose last row is stored. Rows before it belong to batches whose
    /// last row was compacted.
    fn first(&mut self, connection: &Connection, revision: i64) -> rusqlite::Result<i64> {
        if let Some(first) = self.first {
            return Ok(first);
        }
        let mut first = connection.prepare_cached(
            "SELECT rev - size + 1 FROM log WHERE rev >= ?1 AND size > 0 ORDER BY rev LIMIT 1",
        )?;
        let found: Option<i64> = first.query_row([revision], |row| row.get(0)).optional()?;
        Ok(*self.first.insert(found.unwrap_or(i64::MAX)))
    }

    fn add(&mut self, record: &Record, sum: i64) {
        self.sums.add(sum);
        self.rows += 1;
        let value = record.value.as_ref().map(Value::parts);
        let rest = value.map_or(&[][..], |(_, rest)| rest);
        let chain = self.chain.get_or_insert_with(|| Chain::after(&self.before));
        chain.add(record, value.map(|(head, _)| head), rest);
    }

    fn end(&mut self, connection: &Connection, last: i64, end: BatchEnd) -> rusqlite::Result<()> {
        self.first = None;
        let sum = std::mem::take(&mut self.sums).finish(end.size, last, end.time, end.bytes);
        let chain = self
            .chain
            .take()
            .unwrap_or_else(|| Chain::after(&self.before));
        // Some rows of a batch below the floor are deleted, and a file of an older program has no digests.
        let whole = std::mem::take(&mut self.rows) == end.size;
        let digest = match end.digest {
            Some(_) if whole && (self.changed || self.moved) => chain.digest(),
            known => known.unwrap_or_default(),
        };
        self.moved = end.digest.is_some_and(|known| known != digest);
        self.before = digest;
        if std::mem::take(&mut self.changed) || self.moved {
            let stored = end.digest.map(|_| digest.0);
            let update = "UPDATE log SET batch_sum = ?2, digest = ?3 WHERE rev = ?1";
            connection.execute(update, (last, sum, stored))?;
        }
        Ok(())
    }
}

/// The columns of the last row of a batch.
struct BatchEnd {
    size: i64,
    time: i64,
    bytes: i64,
    digest: Option<Digest>,
}

fn slice(
    connection: &Connection,
    names: &Names,
    after: i64,
) -> rusqlite::Result<Vec<(Record, i64, Option<BatchEnd>)>> {
    let mut rows = connection.prepare_cached(
        "SELECT rev, prev, resource, key, value, sum, form, actor, size, at, bytes, digest FROM log
         WHERE rev > ?1 ORDER BY rev LIMIT ?2",
    )?;
    let rows = rows.query_map((after, ROWS as i64), |row| {
        let size: i64 = row.get(8)?;
        let end = match size > 0 {
            true => Some(BatchEnd {
                size,
                time: row.get(9)?,
                bytes: row.get(10)?,
                digest: row.get::<_, Option<[u8; 16]>>(11)?.map(Digest),
            }),
            false => None,
        };
        Ok((names.record(row)?, row.get(5)?, end))
    })?;
    rows.collect()
}

fn put(connection: &Connection, record: &Record, value: &Value) -> rusqlite::Result<i64> {
    let bytes = value.to_bytes();
    let header = Header {
        revision: record.revision as i64,
        prev: record.prev as i64,
        cluster: &record.cluster,
        resource: &record.resource,
        key: &record.key,
        actor: record.actor.as_deref(),
    };
    let sum = checksum::record(&header, Some(&bytes));
    connection
        .prepare_cached("UPDATE log SET value = ?2, sum = ?3 WHERE rev = ?1")?
        .execute((header.revision, &bytes[..], sum))?;
    Ok(sum)
}

/// How long to wait for readers of the write-ahead log.
const PATIENCE: Duration = Duration::from_secs(30);

/// Rebuilds the file, so that no page contains deleted or replaced values.
fn forget(connection: &Connection) -> rusqlite::Result<()> {
    // The copy may be larger than memory.
    connection.pragma_update(None, "temp_store", "FILE")?;
    let built = connection.execute_batch("VACUUM");
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    built?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let truncate = "PRAGMA wal_checkpoint(TRUNCATE)";
        let busy: i64 = connection.query_row(truncate, [], |row| row.get(0))?;
        if busy == 0 {
            return Ok(());
        }
        if Instant::now() > deadline {
            tracing::warn!(
                "another program reads the file: old values stay in the write-ahead log until it is done"
            );
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[cfg(test)]
mod tests {
    use bareboat_storage::{Appended, Backend as _, Batch, Mark};

    use super::*;
    use crate::Sqlite;

    /// A key, the replaced revision, and the value.
    type Row = (&'static str, u64, Option<&'static str>);

    fn append(log: &Sqlite, base: Mark, rows: &[Row]) -> Mark {
        let record = |(revision, &(key, prev, value)): (u64, &Row)| Record {
            revision,
            prev,
            cluster: "".into(),
            resource: "core/configmaps".into(),
            key: key.into(),
            actor: None,
            value: value.map(|value| Value::new(value.into())),
        };
        let batch = Batch {
            id: u128::from(base.last),
            writer: 1,
            records: (base.last + 1..).zip(rows).map(record).collect(),
        };
        match log.append(&base, &batch).unwrap() {
            Appended::Done(end) => end,
            moved => panic!("{moved:?}"),
        }
    }

    #[test]
    fn rows_left_over_of_a_batch_do_not_damage_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        let log = Sqlite::open(&path).unwrap();
        let first = append(
            &log,
            log.mark().unwrap(),
            &[("kept", 0, Some("{}")), ("gone", 0, Some("{}"))],
        );
        let floor = append(&log, first, &[("gone", first.last, None)]);
        append(&log, floor, &[("c", 0, Some("{}")), ("d", 0, Some("{}"))]);
        // Delete the last row of the first batch, and the whole second batch.
        log.compact(floor.last, 100).unwrap();
        drop(log);
        let done = rewrite(&path, &mut |_| Ok(Some(Value::new("{ }".into()))));
        assert_eq!(done.unwrap().rewritten, 3);
        let log = Sqlite::open(&path).unwrap();
        // Damaged history would have raised the floor.
        assert_eq!(log.compacted(), floor.last);
    }
}

//! Upgrades a file of an older format: keeps a copy beside it, then converts everything in one
//! transaction.
//!
//! A crash leaves the file either unchanged or converted. The name of the copy contains its format, and the copy is
//! never changed again.

use std::fs;
use std::io;
use std::path::Path;

use rusqlite::{Connection, Transaction, params};

use crate::checksum::{self, Header};
use crate::clock;
use crate::error::SqliteError;
use crate::schema::{FORMAT, TABLES, beside};

/// Converts a file of format `found` to the current format. The caller holds the lock, so no other process writes.
pub(crate) fn to_current(
    connection: &mut Connection,
    path: &Path,
    found: i64,
) -> Result<(), SqliteError> {
    let at = |error| SqliteError::at(path, error);
    keep_copy(connection, path, found)?;
    let transaction = connection.transaction().map_err(at)?;
    rewrite(&transaction).map_err(at)?;
    transaction
        .pragma_update(None, "user_version", FORMAT)
        .map_err(at)?;
    transaction.commit().map_err(at)?;
    tracing::info!(file = %path.display(), from = found, to = FORMAT, "upgraded the file to the current format");
    Ok(())
}

fn keep_copy(connection: &Connection, path: &Path, found: i64) -> Result<(), SqliteError> {
    // Copy the write-ahead log into the file, so that the file alone contains the whole state.
    let busy: bool = connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
        .map_err(|error| SqliteError::at(path, error))?;
    if busy {
        return Err(SqliteError::Busy { path: path.into() });
    }
    let copy = beside(path, &format!(".format-{found}"));
    let partial = beside(path, ".partial");
    let written = || -> io::Result<()> {
        fs::copy(path, &partial)?;
        fs::File::open(&partial)?.sync_all()?;
        fs::rename(&partial, &copy)?;
        // The name of the copy must be durable before the original is changed.
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    };
    written().map_err(|source| {
        // An incomplete copy is useless.
        let _ = fs::remove_file(&partial);
        SqliteError::Copy {
            path: copy.clone(),
            source,
        }
    })
}

/// Converts format 1 to 2: adds checksums, and one batch for the existing records.
fn rewrite(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.execute_batch(
        "DROP VIEW live; DROP VIEW history;
         ALTER TABLE log RENAME TO log_1;
         ALTER TABLE resource RENAME TO resource_1;
         ALTER TABLE progress RENAME TO progress_1;",
    )?;
    transaction.execute_batch(TABLES)?;
    transaction.execute_batch(
        "INSERT INTO progress SELECT name, rev FROM progress_1;
         INSERT INTO resource (id, name) SELECT id, name FROM resource_1;",
    )?;
    let floor: i64 =
        transaction.query_row("SELECT rev FROM progress WHERE name = 'floor'", [], |row| {
            row.get(0)
        })?;
    let mut rows = transaction.prepare(
        "SELECT log_1.rev, log_1.prev, log_1.resource, log_1.key, log_1.value, resource.name
         FROM log_1 JOIN resource ON resource.id = log_1.resource ORDER BY log_1.rev",
    )?;
    let mut insert = transaction.prepare(
        "INSERT INTO log (rev, prev, resource, key, sum, value) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    let mut batch = checksum::Batch::default();
    let (mut last, mut size, mut bytes) = (floor, 0, 0);
    let mut rows = rows.query([])?;
    while let Some(row) = rows.next()? {
        let header = Header {
            revision: row.get(0)?,
            prev: row.get(1)?,
            cluster: "",
            resource: row.get_ref(5)?.as_str()?,
            key: row.get_ref(3)?.as_str()?,
            actor: None,
        };
        let value = row.get_ref(4)?.as_blob_or_null()?;
        let sum = checksum::record(&header, value);
        insert.execute(params![
            header.revision,
            header.prev,
            row.get::<_, i64>(2)?,
            header.key,
            sum,
            value
        ])?;
        if header.revision > floor {
            batch.add(sum);
            last = header.revision;
            size += 1;
            bytes += (header.key.len() + value.map_or(0, <[u8]>::len)) as i64;
        }
    }
    // The time of writing is unknown, so the age counts from now.
    if last > floor {
        let at = clock::now_millis();
        let sum = batch.finish(size, last, at, bytes);
        transaction.execute(
            "UPDATE log SET size = ?2, at = ?3, bytes = ?4, batch_sum = ?5 WHERE rev = ?1",
            [last, size, at, bytes, sum],
        )?;
    }
    drop(rows);
    transaction.execute_batch("DROP TABLE log_1; DROP TABLE resource_1; DROP TABLE progress_1;")
}

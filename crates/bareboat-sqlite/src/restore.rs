//! After an older state was put back: the counter jumps over all revisions that clients may have seen, and history
//! begins there.
//!
//! Otherwise a client that saw revisions which are lost would go on from one of them in a history that is another.

use std::path::Path;

use rusqlite::Connection;

use crate::error::SqliteError;
use crate::lock::Lock;
use crate::{SqliteOptions, schema};

/// How far the counter jumps beyond the last known revision: more than a backup is likely to lack.
const JUMP: u64 = 1 << 20;

/// What [`raise`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The last revision in the file.
    pub last: u64,
    /// Where counter and floor are now.
    pub raised: u64,
}

/// Raises counter and floor of a file that no server has open: 2^20 above its last revision, and above `beyond`.
///
/// `beyond` is a revision that is known to have been given out, 0 if none is. Clients with older versions are told that
/// these are gone.
pub fn raise(path: impl AsRef<Path>, beyond: u64) -> Result<Restored, SqliteError> {
    let path = path.as_ref();
    let _lock = Lock::take(path)?;
    let (connection, floor) = schema::open(path, &SqliteOptions::default())?;
    let at = |error| SqliteError::at(path, error);
    let last = last(&connection, floor).map_err(at)?;
    let raised = last.max(beyond).saturating_add(JUMP).min(i64::MAX as u64);
    connection
        .execute(
            "UPDATE progress SET rev = ?1 WHERE name = 'floor'",
            [raised as i64],
        )
        .map_err(at)?;
    connection
        .close()
        .map_err(|(_, error)| SqliteError::at(path, error))?;
    Ok(Restored { last, raised })
}

/// The last revision a file knows of. It is only read.
pub fn last_revision(path: impl AsRef<Path>) -> Result<u64, SqliteError> {
    let path = path.as_ref();
    let at = |error| SqliteError::at(path, error);
    let connection = schema::open_reader(path).map_err(at)?;
    let floor = "SELECT rev FROM progress WHERE name = 'floor'";
    let floor: i64 = connection
        .query_row(floor, [], |row| row.get(0))
        .map_err(at)?;
    last(&connection, floor as u64).map_err(at)
}

fn last(connection: &Connection, floor: u64) -> rusqlite::Result<u64> {
    let last = "SELECT coalesce(max(rev), 0) FROM log";
    let last: i64 = connection.query_row(last, [], |row| row.get(0))?;
    Ok(floor.max(last as u64))
}

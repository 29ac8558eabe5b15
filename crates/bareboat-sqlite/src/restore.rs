//! Prepares a restored backup: the revision counter jumps above all revisions that clients may have seen, and the
//! history begins there.
//!
//! Otherwise a client that saw lost revisions would continue from one of them in a different history.

use std::path::Path;

use rusqlite::Connection;

use crate::error::SqliteError;
use crate::lock::Lock;
use crate::refill::{self, JUMP};
use crate::{SqliteOptions, schema};

/// The result of [`raise`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The last revision in the file.
    pub last: u64,
    /// The new counter and floor.
    pub raised: u64,
}

/// Raises the revision counter and the floor of a file that no server has open: to 2^20 above its last revision and
/// above `beyond`.
///
/// `beyond` is a revision that is known to have been assigned, or 0. Clients with older resourceVersions get the error
/// that these are expired.
pub fn raise(path: impl AsRef<Path>, beyond: u64) -> Result<Restored, SqliteError> {
    let path = path.as_ref();
    let _lock = Lock::take(path)?;
    let (mut connection, floor) = schema::open(path, &SqliteOptions::default())?;
    let at = |error| SqliteError::at(path, error);
    let last = last(&connection, floor).map_err(at)?;
    let raised = last.max(beyond).saturating_add(JUMP).min(i64::MAX as u64);
    let mut raise = || -> rusqlite::Result<()> {
        let transaction = connection.transaction()?;
        refill::raise(&transaction, raised)?;
        transaction.commit()
    };
    raise().map_err(at)?;
    connection
        .close()
        .map_err(|(_, error)| SqliteError::at(path, error))?;
    Ok(Restored { last, raised })
}

/// Returns the last revision in a file, without changing the file.
pub fn last_revision(path: impl AsRef<Path>) -> Result<u64, SqliteError> {
    let path = path.as_ref();
    let at = |error| SqliteError::at(path, error);
    let connection = schema::open_reader(path).map_err(at)?;
    let floor = schema::floor(&connection).map_err(at)?;
    last(&connection, floor).map_err(at)
}

fn last(connection: &Connection, floor: u64) -> rusqlite::Result<u64> {
    let last = "SELECT coalesce(max(rev), 0) FROM log";
    let last: i64 = connection.query_row(last, [], |row| row.get(0))?;
    Ok(floor.max(last as u64))
}

//! Looking through the batches above the floor when a file is opened: history that is damaged is given up, and lost
//! revisions are an error.

use std::path::Path;

use rusqlite::Connection;

use crate::checksum;
use crate::error::SqliteError;

/// The revision after which every batch is as it was written, 0 if all of them are.
///
/// What is older is given up as if it had been compacted: clients list again. The state itself is not in question here,
/// since every record has a checksum of its own.
pub(crate) fn intact_after(
    connection: &Connection,
    path: &Path,
    floor: u64,
) -> Result<u64, SqliteError> {
    let at = |error| SqliteError::at(path, error);
    let mut batches = connection
        .prepare("SELECT first, last, at, bytes, sum FROM batch WHERE first > ?1 ORDER BY first")
        .map_err(at)?;
    let mut records = connection
        .prepare("SELECT rev, sum FROM log WHERE rev > ?1 ORDER BY rev")
        .map_err(at)?;
    let mut batches = batches.query([floor as i64]).map_err(at)?;
    let mut records = records.query([floor as i64]).map_err(at)?;
    let mut record: Option<(i64, i64)> = None;
    let mut damaged = 0;
    while let Some(row) = batches.next().map_err(at)? {
        let read = || -> rusqlite::Result<[i64; 5]> {
            Ok([
                row.get(0)?,
                row.get(1)?,
                row.get(2)?,
                row.get(3)?,
                row.get(4)?,
            ])
        };
        let [first, last, time, bytes, sum] = read().map_err(at)?;
        let mut own = checksum::Batch::new();
        let mut found = 0;
        loop {
            if record.is_none() {
                record = match records.next().map_err(at)? {
                    Some(row) => {
                        let read = || Ok((row.get(0)?, row.get(1)?));
                        Some(read().map_err(at)?)
                    }
                    None => None,
                };
            }
            match record {
                Some((rev, _)) if rev < first => record = None,
                Some((rev, sum)) if rev <= last => {
                    own.add(sum);
                    found += 1;
                    record = None;
                }
                _ => break,
            }
        }
        if own.finish(first, last, time, bytes) == sum {
            continue;
        }
        if found != last - first + 1 {
            let path = path.to_owned();
            return Err(SqliteError::Gap { path, first, last });
        }
        tracing::error!(first, last, "history is damaged and given up");
        damaged = last as u64;
    }
    Ok(damaged)
}

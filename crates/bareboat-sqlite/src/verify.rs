//! Checks the history above the floor when a file is opened: damaged history is dropped, missing
//! revisions are an error, and the times of writing are collected.

use std::path::Path;
use std::time::Duration;

use bareboat_storage::Written;
use rusqlite::Connection;

use crate::checksum;
use crate::clock;
use crate::error::SqliteError;

/// The result of the check.
#[derive(Default)]
pub(crate) struct History {
    /// The revision after which every batch is intact; 0 if all batches are.
    ///
    /// Older history is dropped as if it had been compacted: clients list again. The state itself is not affected,
    /// because every record has its own checksum.
    pub(crate) intact_after: u64,
    /// The times of writing; batches of about the same time are joined.
    pub(crate) written: Vec<Written>,
    /// The time of the last batch.
    pub(crate) at: i64,
}

/// Batches that are smaller than this together are joined, unless `APART` or more lies between them.
const TOGETHER: u64 = 1 << 20;
const APART: Duration = Duration::from_secs(1);

impl History {
    /// Reads the history above the floor.
    pub(crate) fn read(
        connection: &Connection,
        path: &Path,
        floor: u64,
    ) -> Result<History, SqliteError> {
        let at = |error| SqliteError::at(path, error);
        let mut rows = connection
            .prepare(
                "SELECT rev, sum, size, at, bytes, batch_sum FROM log WHERE rev > ?1 ORDER BY rev",
            )
            .map_err(at)?;
        let mut rows = rows.query([floor as i64]).map_err(at)?;
        let mut history = History::default();
        let mut sums = checksum::Batch::default();
        // There are no gaps between revisions above the floor.
        let (mut found, mut rev, mut before) = (0, floor as i64, floor as i64);
        while let Some(row) = rows.next().map_err(at)? {
            let size: i64 = row.get(2).map_err(at)?;
            rev = row.get(0).map_err(at)?;
            sums.add(row.get(1).map_err(at)?);
            found += 1;
            if size == 0 {
                continue;
            }
            let end = || Ok((row.get(3)?, row.get(4)?, row.get(5)?));
            let (time, bytes, sum): (i64, i64, i64) = end().map_err(at)?;
            let own = std::mem::take(&mut sums).finish(size, rev, time, bytes);
            let (here, first) = (std::mem::take(&mut found), rev - size + 1);
            if first > before + 1 {
                return Err(gap(path, before + 1, first - 1));
            }
            before = rev;
            // Rows of a batch at the floor may be missing.
            if first <= floor as i64 && here <= size {
                history.note(rev, time, bytes);
                continue;
            }
            if here != size {
                return Err(gap(path, first.min(rev - here + 1), rev));
            }
            if own != sum {
                tracing::error!(first, last = rev, "dropped damaged history");
                history.intact_after = rev as u64;
            }
            history.note(rev, time, bytes);
        }
        match found {
            0 => Ok(history),
            // The end of the last batch is missing.
            _ => Err(gap(path, rev - found + 1, rev + 1)),
        }
    }

    fn note(&mut self, rev: i64, time: i64, bytes: i64) {
        self.at = self.at.max(time);
        let next = Written {
            last: rev as u64,
            at: clock::time(time),
            bytes: bytes.max(0) as u64,
        };
        match self.written.last_mut() {
            Some(last)
                if last.bytes + next.bytes < TOGETHER
                    && next.at.duration_since(last.at).unwrap_or_default() < APART =>
            {
                // The older time is kept; otherwise all batches of a busy hour would be joined.
                last.last = next.last;
                last.bytes += next.bytes;
            }
            _ => self.written.push(next),
        }
    }
}

fn gap(path: &Path, first: i64, last: i64) -> SqliteError {
    let path = path.to_owned();
    SqliteError::Gap { path, first, last }
}

//! Compaction in the order of the primary key. Each row contains the revision that it replaced, so obsolete rows are
//! found without an index.

use bareboat_storage::{Mark, Sweep};
use rusqlite::Connection;

use crate::mark;
use crate::schema::pragma;

/// The result of a slice of compaction.
pub(crate) struct Swept {
    pub(crate) sweep: Sweep,
    pub(crate) free_bytes: u64,
    /// An upper estimate of the pages added to the write-ahead log.
    pub(crate) pages: u64,
}

/// The number of free pages that are returned to the disk at a time. Free pages are reused, so only a large excess is
/// returned.
const VACUUM_PAGES: i64 = 256;

/// Raises the floor and sweeps up to `rows` rows below it.
pub(crate) fn slice(
    connection: &mut Connection,
    end: &Mark,
    floor: u64,
    rows: usize,
) -> rusqlite::Result<Swept> {
    // This commit needs no fsync: the log is written in order, so a crash keeps a prefix of it, in which the floor
    // comes before the rows. Lost deletions are repeated.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    let swept = sweep(connection, end, floor as i64, rows);
    let vacuumed = match swept {
        Ok((Sweep::Done, _)) => vacuum(connection),
        _ => Ok((Sweep::More, 0, 0)),
    };
    connection.pragma_update(None, "synchronous", "FULL")?;
    let (_, deleted) = swept?;
    let (sweep, free_bytes, moved) = vacuumed?;
    Ok(Swept {
        sweep,
        free_bytes,
        pages: deleted + moved,
    })
}

/// Deletes rows; also returns the number of deleted rows.
fn sweep(
    connection: &mut Connection,
    end: &Mark,
    floor: i64,
    rows: usize,
) -> rusqlite::Result<(Sweep, u64)> {
    let progress = "SELECT rev FROM progress WHERE name = ?1";
    let known = |name| {
        connection
            .prepare_cached(progress)?
            .query_row([name], |row| row.get(0))
    };
    let (durable, swept): (i64, i64) = (known("floor")?, known("swept")?);
    if durable >= floor && swept >= floor {
        return Ok((Sweep::Done, 0));
    }
    let transaction = connection.transaction()?;
    let slice: Vec<(i64, i64, bool)> = transaction
        .prepare_cached(
            "SELECT rev, prev, value IS NULL FROM log
             WHERE rev > ?1 AND rev <= ?2 ORDER BY rev LIMIT ?3",
        )?
        .query_map((swept, floor, rows as i64), |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?
        .collect::<Result<_, _>>()?;
    let mut deleted = 0;
    {
        let mut forget = transaction.prepare_cached("DELETE FROM log WHERE rev = ?1")?;
        for &(rev, prev, tombstone) in &slice {
            if prev != 0 {
                deleted += forget.execute([prev])?;
            }
            if tombstone {
                deleted += forget.execute([rev])?;
            }
        }
        let mut note =
            transaction.prepare_cached("UPDATE progress SET rev = ?2 WHERE name = ?1")?;
        note.execute(("floor", durable.max(floor)))?;
        let reached = match slice.last() {
            Some(last) if slice.len() == rows => last.0,
            _ => floor,
        };
        note.execute(("swept", reached))?;
        mark::keep(&transaction, end)?;
    }
    transaction.commit()?;
    let sweep = match slice.len() == rows {
        true => Sweep::More,
        false => Sweep::Done,
    };
    Ok((sweep, deleted as u64 + 4))
}

/// Returns some free pages to the disk if more than a quarter of the file is free. Returns whether more should follow,
/// the bytes still free and the pages written.
fn vacuum(connection: &Connection) -> rusqlite::Result<(Sweep, u64, u64)> {
    let free = pragma(connection, "freelist_count")?;
    let pages = pragma(connection, "page_count")?;
    let page = pragma(connection, "page_size")?;
    let surplus = free > VACUUM_PAGES && free > pages / 4;
    if surplus {
        // This pragma is formally a query: each step frees a page.
        let mut step = connection.prepare(&format!("PRAGMA incremental_vacuum({VACUUM_PAGES})"))?;
        let mut rows = step.query([])?;
        while rows.next()?.is_some() {}
    }
    let (sweep, moved) = match surplus {
        true => (Sweep::More, 2 * VACUUM_PAGES as u64),
        false => (Sweep::Done, 0),
    };
    Ok((sweep, (free * page) as u64, moved))
}

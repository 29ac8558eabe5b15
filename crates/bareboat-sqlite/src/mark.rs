//! The end of the log: its last revision, its epoch and the digest up to there.
//!
//! The last row of a batch has the digest of the batch. When compaction deletes the last row of the log, it stores the
//! digest in the table of progress, as two numbers.

use bareboat_storage::{Digest, Mark};
use rusqlite::{Connection, OptionalExtension};

/// Reads the end of the log.
pub(crate) fn read(connection: &Connection) -> rusqlite::Result<Mark> {
    let progress = |name: &str| -> rusqlite::Result<i64> {
        let rev = "SELECT rev FROM progress WHERE name = ?1";
        let mut rev = connection.prepare_cached(rev)?;
        let rev = rev.query_row([name], |row| row.get(0)).optional()?;
        Ok(rev.unwrap_or(0))
    };
    let newest = "SELECT rev, digest FROM log ORDER BY rev DESC LIMIT 1";
    let newest: Option<(i64, Option<Vec<u8>>)> = connection
        .query_row(newest, [], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let (rev, digest) = newest.unwrap_or_default();
    let kept = progress("digest_at")?;
    let digest = match digest.and_then(|digest| <[u8; 16]>::try_from(digest).ok()) {
        Some(digest) if rev >= kept => digest,
        _ => {
            let mut digest = [0; 16];
            digest[..8].copy_from_slice(&progress("digest_high")?.to_be_bytes());
            digest[8..].copy_from_slice(&progress("digest_low")?.to_be_bytes());
            digest
        }
    };
    Ok(Mark {
        // The newest record may be a compacted tombstone; its revision is then the floor.
        last: rev.max(progress("floor")?) as u64,
        epoch: progress("epoch")? as u64,
        digest: Digest(digest),
    })
}

/// Stores the digest of `mark` outside of its row.
pub(crate) fn keep(connection: &Connection, mark: &Mark) -> rusqlite::Result<()> {
    let half = |at: usize| {
        let mut half = [0; 8];
        half.copy_from_slice(&mark.digest.0[at..at + 8]);
        i64::from_be_bytes(half)
    };
    let mut put = connection.prepare_cached(
        "INSERT INTO progress VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET rev = excluded.rev",
    )?;
    put.execute(("digest_at", mark.last as i64))?;
    put.execute(("digest_high", half(0)))?;
    put.execute(("digest_low", half(8)))?;
    Ok(())
}

/// Begins another epoch.
pub(crate) fn next_epoch(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "INSERT INTO progress VALUES ('epoch', 1)
         ON CONFLICT (name) DO UPDATE SET rev = rev + 1",
    )
}

/// Sets the epoch.
pub(crate) fn set_epoch(connection: &Connection, epoch: u64) -> rusqlite::Result<()> {
    connection.execute(
        "INSERT INTO progress VALUES ('epoch', ?1) ON CONFLICT (name) DO UPDATE SET rev = excluded.rev",
        [epoch as i64],
    )?;
    Ok(())
}

/// Visits the ends of batches from `floor` on. Batches of older formats have no digest.
pub(crate) fn each(
    connection: &Connection,
    floor: u64,
    visit: &mut dyn FnMut(Mark),
) -> rusqlite::Result<()> {
    let batches = "SELECT rev, epoch, digest FROM log
        WHERE rev >= ?1 AND size > 0 AND digest IS NOT NULL ORDER BY rev";
    let mut batches = connection.prepare(batches)?;
    let mut rows = batches.query([floor as i64])?;
    while let Some(row) = rows.next()? {
        let digest = <[u8; 16]>::try_from(row.get_ref(2)?.as_blob()?);
        visit(Mark {
            last: row.get::<_, i64>(0)? as u64,
            epoch: row.get::<_, Option<i64>>(1)?.unwrap_or(0) as u64,
            digest: Digest(digest.unwrap_or_default()),
        });
    }
    Ok(())
}

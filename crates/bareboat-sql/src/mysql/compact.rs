//! Compaction, in slices. Every statement is a transaction of its own, so appends do not wait for compaction. Two
//! servers may delete the same rows, and a slice whose progress was not stored is repeated.

use bareboat_storage::{BackendError, Sweep};
use mysql_async::Error;

use super::Inner;
use super::link::{Connection, silence};
use super::rows::number;
use crate::dialect::Link as _;
use crate::engine::closed;
use crate::error::sweep_failed;

/// Selects rows that follow the last swept row.
const SLICE: &str =
    "SELECT rev, prev, value IS NULL FROM log WHERE rev > ? AND rev <= ? ORDER BY rev LIMIT ?";
/// Selects the oldest batches, and whether they are old enough to delete. A writer that was suspended for days must
/// find that its batch is not the next one.
const OLDEST: &str =
    "SELECT first, last <= ? AND last < ? AND at < UTC_TIMESTAMP(6) - INTERVAL 7 DAY
    FROM batch ORDER BY first LIMIT ?";
const FORGET: &str = "DELETE FROM replica WHERE seen < UTC_TIMESTAMP(6) - INTERVAL 1 DAY";

impl Inner {
    pub(super) fn compact(&self, upto: u64, rows: usize) -> Result<Sweep, BackendError> {
        let mut held = self.writer.get(self)?;
        let Some(link) = held.as_mut() else {
            return Err(closed());
        };
        let swept = self.block(self.sweep(link, upto, rows.max(1)));
        if held.as_ref().is_some_and(|link| link.is_closed()) {
            *held = None;
        }
        swept.map_err(sweep_failed)
    }

    async fn sweep(&self, link: &mut Connection, upto: u64, most: usize) -> Result<Sweep, Error> {
        let state = "SELECT last, floor, swept FROM meta WHERE id = 1";
        let row = link.first(state, ()).await?.ok_or_else(silence)?;
        let (last, mut floor, swept) = (number(&row, 0), number(&row, 1), number(&row, 2));
        let wanted = upto.min(last);
        if wanted > floor {
            // The floor must be durable before the first row is deleted.
            let raise = "UPDATE meta SET floor = GREATEST(floor, ?) WHERE id = 1";
            link.first(raise, (wanted,)).await?;
            floor = wanted;
        }
        self.learn_floor(floor);
        if swept < floor {
            let slice = link.rows(SLICE, (swept, floor, most as u64)).await?;
            let more = slice.len() == most;
            let reached = match slice.last() {
                Some(row) if more => number(row, 0),
                _ => floor,
            };
            let mut gone = Vec::new();
            for row in &slice {
                let (rev, prev, tombstone) = (number(row, 0), number(row, 1), number(row, 2));
                gone.extend((prev != 0).then_some(prev));
                gone.extend((tombstone != 0).then_some(rev));
            }
            delete(link, "log", "rev", &gone).await?;
            let note = "UPDATE meta SET swept = GREATEST(swept, ?) WHERE id = 1";
            link.first(note, (reached,)).await?;
            if more {
                return Ok(Sweep::More);
            }
        }
        let oldest = link.rows(OLDEST, (floor, last, most as u64)).await?;
        let old = oldest.iter().take_while(|row| number(row, 1) != 0);
        let old: Vec<u64> = old.map(|row| number(row, 0)).collect();
        delete(link, "batch", "first", &old).await?;
        if old.len() == most {
            return Ok(Sweep::More);
        }
        link.first(FORGET, ()).await?;
        Ok(Sweep::Done)
    }
}

/// Deletes rows by their revisions.
async fn delete(
    link: &mut Connection,
    table: &str,
    column: &str,
    numbers: &[u64],
) -> Result<(), Error> {
    for some in numbers.chunks(1000) {
        let list: Vec<String> = some.iter().map(u64::to_string).collect();
        let list = list.join(",");
        let delete = format!("DELETE FROM {table} WHERE {column} IN ({list})");
        link.run(&delete).await?;
    }
    Ok(())
}

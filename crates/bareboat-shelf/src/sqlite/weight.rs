//! How many bytes the objects of each member have. Adding them up reads many rows, so it is done only when what was written since
//! the last time could exceed the limit.

use crate::shelf::ShelfError;
use rusqlite::Connection;
use std::collections::HashMap;

/// The bytes of members, as far as they are known.
#[derive(Debug, Default)]
pub(super) struct Weights(HashMap<i64, Weight>);

#[derive(Debug)]
struct Weight {
    /// What the last count found.
    known: u64,
    /// What was written since, whatever it replaced.
    since: u64,
}

impl Weights {
    /// Notes what was written of a member, and checks that all of it stays within a limit. A member that is close to its limit may
    /// exceed it by a hundredth.
    pub(super) fn add(
        &mut self,
        connection: &Connection,
        member: i64,
        bytes: u64,
        limit: u64,
    ) -> Result<(), ShelfError> {
        if let Some(weight) = self.0.get_mut(&member) {
            weight.since += bytes;
            let room = limit.saturating_sub(weight.known).max(limit / 100);
            if weight.since <= room {
                return Ok(());
            }
        }
        let known = count(connection, member)?;
        if known > limit {
            // The transaction is undone, so the next write counts again.
            self.0.remove(&member);
            return Err(ShelfError::QuotaBytes(limit));
        }
        self.0.insert(member, Weight { known, since: 0 });
        Ok(())
    }
}

fn count(connection: &Connection, member: i64) -> Result<u64, ShelfError> {
    let sql =
        "SELECT coalesce(sum(length(body.json)), 0) FROM object JOIN body ON body.id = object.id
        WHERE object.member = ? AND object.gone IS NULL";
    let bytes: i64 = connection
        .prepare_cached(sql)?
        .query_row([member], |row| row.get(0))?;
    Ok(bytes.unsigned_abs())
}

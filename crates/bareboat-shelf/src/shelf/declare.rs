//! Declared fields: narrow rows have their texts, and an index answers for them.

use super::{Shelf, ShelfError, read, write};
use crate::path::Path;
use crate::plan::Indexed;
use crate::row::KindId;
use rusqlite::params;

/// How many rows one transaction completes.
const AT_ONCE: i64 = 1000;

impl Shelf {
    /// Declares fields of a kind, in addition to those it has. Rows that exist are completed from their bodies.
    pub fn declare(&self, kind: KindId, paths: &[Path], now: i64) -> Result<(), ShelfError> {
        let directory = self.directory();
        let new: Vec<&Path> = paths
            .iter()
            .filter(|path| path.is_simple() && !directory.declares(kind, path))
            .collect();
        if new.is_empty() {
            return Ok(());
        }
        let declared = directory.declared.get(&kind.0);
        let mut all: Vec<Path> = declared.cloned().unwrap_or_default();
        all.extend(new.iter().copied().cloned());
        self.fill(kind, &all)?;
        {
            // Rows that were written meanwhile lack the new fields, so the rest is done with the writer held.
            let writer = self.writer.lock();
            for path in &new {
                writer.connection.execute(
                    "INSERT OR IGNORE INTO declared (kind, path) VALUES (?, ?)",
                    params![kind.0, path.to_string()],
                )?;
            }
            self.reload(&writer.connection)?;
        }
        self.fill(kind, &all)?;
        for path in new {
            self.add_index(&Indexed::Field(path.to_string()), now)?;
        }
        Ok(())
    }

    /// Writes the declared fields of all rows of a kind. No version changes: the objects did not.
    fn fill(&self, kind: KindId, paths: &[Path]) -> Result<(), ShelfError> {
        let mut after = 0_i64;
        loop {
            let mut writer = self.writer.lock();
            let transaction = writer.connection.transaction()?;
            let ids: Vec<(i64, String)> = {
                let mut statement = transaction.prepare_cached(
                    "SELECT id, fields FROM object WHERE kind = ? AND id > ? AND gone IS NULL ORDER BY id LIMIT ?",
                )?;
                let rows = statement.query_map(params![kind.0, after, AT_ONCE], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })?;
                rows.collect::<Result<_, _>>()?
            };
            let Some((last, _)) = ids.last() else {
                return Ok(());
            };
            after = *last;
            for (id, old) in &ids {
                let Some((body, _)) = read::body(&transaction, *id)? else {
                    continue;
                };
                let Ok(parsed) = bareboat_wire::json::parse(&body) else {
                    continue;
                };
                let fields = write::extracted(&parsed.value, paths);
                if fields != *old {
                    let sql = "UPDATE object SET fields = ? WHERE id = ?";
                    transaction
                        .prepare_cached(sql)?
                        .execute(params![fields, id])?;
                }
            }
            transaction.commit()?;
        }
    }
}

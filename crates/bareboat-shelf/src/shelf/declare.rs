//! Declared fields: narrow rows have their texts, and an index answers for them.

use super::{Shelf, ShelfError};
use crate::decide::extracted;
use crate::param::{Param, number, text};
use crate::path::Path;
use crate::plan::Indexed;
use crate::row::KindId;
use std::collections::HashMap;

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
        let sql = format!(
            "INSERT INTO declared (kind, path) VALUES (?, ?) {}",
            self.engine.dialect().or_leave(&["kind", "path"])
        );
        self.renaming(|session| {
            for path in &new {
                session.run(&sql, &[kind.0.into(), path.to_string().into()])?;
            }
            Ok(())
        })?;
        // Rows that were written meanwhile lack the new fields.
        self.fill(kind, &all)?;
        for path in new {
            self.add_index(&Indexed::Field(path.to_string()), now)?;
        }
        Ok(())
    }

    /// Writes the declared fields of all rows of a kind. No version changes: the objects did not. A row that another server changes
    /// meanwhile is left alone: that server knows the fields, or the next look finds the row.
    fn fill(&self, kind: KindId, paths: &[Path]) -> Result<(), ShelfError> {
        let dialect = self.engine.dialect();
        let select = format!(
            "SELECT id, rev, {} FROM object WHERE kind = ? AND id > ? AND gone IS NULL ORDER BY id LIMIT {AT_ONCE}",
            dialect.json_text("fields")
        );
        let update = format!(
            "UPDATE object SET fields = {} WHERE id = ? AND rev = ? AND gone IS NULL",
            dialect.json_mark()
        );
        let mut after = 0_i64;
        loop {
            let last = self.changing(|session| {
                let mut old: HashMap<i64, (i64, String)> = HashMap::new();
                session.rows(&select, &[kind.0.into(), after.into()], &mut |row| {
                    old.insert(number(row, 0)?, (number(row, 1)?, text(row, 2)?));
                    Ok(true)
                })?;
                let mut ids: Vec<i64> = old.keys().copied().collect();
                ids.sort_unstable();
                let mut changed: Vec<[Param; 3]> = Vec::new();
                session.bodies(&ids, &mut |id, body, _| {
                    let (Ok(parsed), Some((rev, old))) =
                        (bareboat_wire::json::parse(body), old.get(&id))
                    else {
                        return Ok(());
                    };
                    let fields = extracted(&parsed.value, paths);
                    if *old != fields {
                        changed.push([fields.into(), id.into(), (*rev).into()]);
                    }
                    Ok(())
                })?;
                for values in &changed {
                    session.run(&update, values)?;
                }
                Ok(ids.last().copied())
            })?;
            match last {
                Some(last) => after = last,
                None => return Ok(()),
            }
        }
    }
}

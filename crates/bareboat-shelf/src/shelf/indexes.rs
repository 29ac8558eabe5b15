//! Indexes that are declared or learnt: a generated column over the labels or fields of narrow rows, and an index on it.

use super::{Shelf, ShelfError};
use crate::plan::Indexed;
use rusqlite::{Connection, params};
use std::collections::HashMap;
use std::sync::Arc;

/// The most indexes at a time.
const MOST: usize = 48;
/// The most labels whose uses are counted.
const MOST_COUNTED: usize = 1000;

/// The indexes there are.
#[derive(Clone, Debug, Default)]
pub(super) struct Indexes(HashMap<Indexed, i64>);

impl Indexes {
    /// Returns the number of the column.
    pub(super) fn column(&self, indexed: &Indexed) -> Option<i64> {
        self.0.get(indexed).copied()
    }
}

/// How often labels were asked for since the last upkeep.
#[derive(Debug, Default)]
pub(super) struct Uses {
    missing: HashMap<String, u32>,
    used: HashMap<String, ()>,
}

impl Uses {
    pub(super) fn count(&mut self, indexes: &Indexes, labels: &[String]) {
        for label in labels {
            if indexes.column(&Indexed::Label(label.clone())).is_some() {
                self.used.insert(label.clone(), ());
            } else if self.missing.len() < MOST_COUNTED || self.missing.contains_key(label) {
                *self.missing.entry(label.clone()).or_default() += 1;
            }
        }
    }
}

/// Reads the list of indexes.
pub(super) fn load(connection: &Connection) -> Result<Indexes, ShelfError> {
    let mut statement = connection.prepare("SELECT no, sort, key FROM learnt")?;
    let rows = statement.query_map([], |row| {
        let (no, sort, key): (i64, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let indexed = match sort.as_str() {
            "label" => Indexed::Label(key),
            _ => Indexed::Field(key),
        };
        Ok((indexed, no))
    })?;
    Ok(Indexes(rows.collect::<Result<_, _>>()?))
}

impl Shelf {
    /// Makes indexes for labels that were asked for often, and drops those that were not used for long.
    pub(super) fn learn(&self, now: i64) -> Result<(), ShelfError> {
        let (wanted, used) = {
            let mut uses = self.uses.lock();
            let often = self.settings.learn_after;
            let wanted: Vec<String> = uses
                .missing
                .iter()
                .filter(|(_, count)| **count >= often)
                .map(|(key, _)| key.clone())
                .collect();
            for key in &wanted {
                uses.missing.remove(key);
            }
            let used: Vec<String> = uses.used.drain().map(|(key, ())| key).collect();
            (wanted, used)
        };
        for key in used {
            self.writer.lock().connection.execute(
                "UPDATE learnt SET used = ? WHERE sort = 'label' AND key = ?",
                params![now, key],
            )?;
        }
        for key in wanted {
            self.add_index(&Indexed::Label(key), now)?;
        }
        let old = now - i64::try_from(self.settings.forget_after.as_millis()).unwrap_or(i64::MAX);
        let unused: Vec<i64> = {
            let writer = self.writer.lock();
            let sql = "SELECT no FROM learnt WHERE sort = 'label' AND used < ?";
            let mut statement = writer.connection.prepare(sql)?;
            let rows = statement.query_map([old], |row| row.get(0))?;
            rows.collect::<Result<_, _>>()?
        };
        unused.into_iter().try_for_each(|no| self.drop_index(no))
    }

    /// Makes an index, if there is room for one.
    pub(super) fn add_index(&self, indexed: &Indexed, now: i64) -> Result<(), ShelfError> {
        let (sort, column, key) = match indexed {
            Indexed::Label(key) => ("label", "labels", key),
            Indexed::Field(key) => ("field", "fields", key),
        };
        let common = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        let current = self.indexes.read().clone();
        if !key.chars().all(common) || current.column(indexed).is_some() || current.0.len() >= MOST
        {
            return Ok(());
        }
        let mut writer = self.writer.lock();
        let transaction = writer.connection.transaction()?;
        transaction.execute(
            "INSERT INTO learnt (sort, key, used) VALUES (?, ?, ?)",
            params![sort, key, now],
        )?;
        let no = transaction.last_insert_rowid();
        // A definition has no parameters, so the key is part of the text; its characters were checked.
        transaction.execute_batch(&format!(
            "ALTER TABLE object ADD COLUMN x{no} TEXT GENERATED ALWAYS AS (json_extract({column}, '$.\"{key}\"')) VIRTUAL;
             CREATE INDEX object_x{no} ON object (kind, x{no}, ns, name, member) WHERE gone IS NULL AND x{no} IS NOT NULL;"
        ))?;
        transaction.commit()?;
        tracing::info!(sort, key, "made an index of the shelf");
        *self.indexes.write() = Arc::new(load(&writer.connection)?);
        Ok(())
    }

    fn drop_index(&self, no: i64) -> Result<(), ShelfError> {
        // Searches stop to use it first.
        let mut writer = self.writer.lock();
        let mut left = Indexes::clone(&self.indexes.read());
        left.0.retain(|_, column| *column != no);
        *self.indexes.write() = Arc::new(left);
        let transaction = writer.connection.transaction()?;
        transaction.execute_batch(&format!(
            "DROP INDEX object_x{no}; ALTER TABLE object DROP COLUMN x{no}; DELETE FROM learnt WHERE no = {no};"
        ))?;
        Ok(transaction.commit()?)
    }

    /// Returns the labels and fields that have an index.
    pub fn indexed(&self) -> Vec<String> {
        let indexes = self.indexes.read();
        let name = |indexed: &Indexed| match indexed {
            Indexed::Label(key) => format!("label {key}"),
            Indexed::Field(key) => format!("field {key}"),
        };
        let mut names: Vec<String> = indexes.0.keys().map(name).collect();
        names.sort();
        names
    }
}

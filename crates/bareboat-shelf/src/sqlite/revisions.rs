//! The counter of changes. No number is given twice, even if the last commits are lost in a power cut.
//!
//! Numbers are reserved in blocks, with an fsync. After an unclean stop counting goes on in the next block, and the rest of the old
//! one is a gap: versions in it may have been given to clients for changes that are lost.

use crate::shelf::ShelfError;
use bareboat_api::{Value, value};
use rusqlite::{Connection, OptionalExtension as _, params};

const BLOCK: i64 = 1 << 20;
/// The most gaps that are remembered; watches from older ones get 410 by the floor.
const GAPS: usize = 64;

/// Which past versions a watch can resume from.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    /// Deletions up to this version are forgotten.
    pub(super) floor: i64,
    /// Versions greater than the first and at most the second are not known.
    pub(super) gaps: Vec<(i64, i64)>,
}

impl History {
    /// Returns whether this shelf gave a version, or may have given it.
    pub(super) fn is_own(&self, rev: i64) -> bool {
        !self.gaps.iter().any(|gap| rev > gap.0 && rev <= gap.1)
    }

    /// Adds versions that are not known. If there are too many gaps, the oldest becomes part of what is forgotten.
    fn skip(&mut self, gap: (i64, i64)) {
        self.gaps.push(gap);
        if self.gaps.len() > GAPS {
            let (_, end) = self.gaps.remove(0);
            self.floor = self.floor.max(end);
        }
    }

    /// Writes what is known.
    fn save(&self, transaction: &Connection) -> Result<(), ShelfError> {
        let gaps = self.gaps.iter().map(|gap| value!([(gap.0), (gap.1)]));
        set(transaction, "floor", &value!(self.floor))?;
        set(transaction, "gaps", &gaps.collect())
    }
}

/// The counter.
#[derive(Debug)]
pub(super) struct Revisions {
    last: i64,
    reserved: i64,
}

impl Revisions {
    /// Continues where the last process stopped, or in the next block if it did not close the file.
    pub(super) fn begin(connection: &mut Connection) -> Result<(Revisions, History), ShelfError> {
        let number = |key: &str| -> Result<i64, ShelfError> {
            Ok(meta(connection, key)?
                .and_then(|value| value.as_i64())
                .unwrap_or(0))
        };
        let (last, reserved) = (number("rev")?, number("reserved")?);
        let clean = number("clean")? == 1 || reserved == 0;
        let mut history = History {
            floor: number("floor")?,
            gaps: gaps(connection)?,
        };
        let mut revisions = Revisions { last, reserved };
        if !clean {
            history.skip((last, reserved));
            revisions.last = reserved + 1;
            revisions.reserved = reserved + 1;
        }
        durably(connection, |transaction| {
            set(transaction, "clean", &value!(0))?;
            set(transaction, "rev", &value!(revisions.last.max(1)))?;
            history.save(transaction)
        })?;
        // Version 0 means "any" to clients.
        revisions.last = revisions.last.max(1);
        revisions.reserve(connection, 0)?;
        Ok((revisions, history))
    }

    pub(super) fn last(&self) -> i64 {
        self.last
    }

    /// Makes sure that so many numbers can be given.
    pub(super) fn reserve(
        &mut self,
        connection: &mut Connection,
        more: usize,
    ) -> Result<(), ShelfError> {
        let needed = self.last + more as i64;
        if needed < self.reserved {
            return Ok(());
        }
        let reserved = needed + BLOCK;
        durably(connection, |transaction| {
            set(transaction, "reserved", &value!(reserved))
        })?;
        self.reserved = reserved;
        Ok(())
    }

    /// Goes on at a number. Those up to it are not known, apart from the ones that this shelf gave since it first did this.
    pub(super) fn jump(
        &mut self,
        connection: &mut Connection,
        history: &mut History,
        to: i64,
    ) -> Result<(), ShelfError> {
        // Numbers from before may be those of any shelf.
        let apart = meta(connection, "apart")?.is_some();
        let known = if apart { self.last } else { 0 };
        let mut next = history.clone();
        next.skip((known, to - 1));
        durably(connection, |transaction| {
            set(transaction, "apart", &value!(1))?;
            set(transaction, "rev", &value!(to))?;
            set(transaction, "reserved", &value!(to + BLOCK))?;
            next.save(transaction)
        })?;
        (self.last, self.reserved) = (to, to + BLOCK);
        *history = next;
        Ok(())
    }

    /// Takes what a transaction used, after its commit.
    pub(super) fn advance(&mut self, last: i64) {
        self.last = last;
    }

    /// Marks the file as complete.
    pub(super) fn end(&mut self, connection: &mut Connection) -> Result<(), ShelfError> {
        durably(connection, |transaction| {
            set(transaction, "clean", &value!(1))
        })
    }
}

/// Remembers the last number in a transaction.
pub(super) fn note(transaction: &Connection, last: i64) -> Result<(), ShelfError> {
    let mut statement =
        transaction.prepare_cached("INSERT OR REPLACE INTO meta (key, value) VALUES ('rev', ?)")?;
    statement.execute(params![last.to_string()])?;
    Ok(())
}

/// Runs a small transaction that is on disk when it returns.
fn durably(
    connection: &mut Connection,
    write: impl FnOnce(&Connection) -> Result<(), ShelfError>,
) -> Result<(), ShelfError> {
    connection.execute_batch("PRAGMA synchronous = FULL")?;
    let transaction = connection.transaction()?;
    let written = write(&transaction).and_then(|()| Ok(transaction.commit()?));
    connection.execute_batch("PRAGMA synchronous = NORMAL")?;
    written
}

/// Writes a setting of the file.
pub(super) fn set(transaction: &Connection, key: &str, value: &Value) -> Result<(), ShelfError> {
    let text = String::from_utf8(value.to_json()).unwrap_or_default();
    transaction.execute(
        "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)",
        params![key, text],
    )?;
    Ok(())
}

/// Reads a setting of the file.
pub(super) fn meta(connection: &Connection, key: &str) -> Result<Option<Value>, ShelfError> {
    let text: Option<String> = connection
        .query_row(
            "SELECT CAST(value AS TEXT) FROM meta WHERE key = ?",
            [key],
            |row| row.get(0),
        )
        .optional()?;
    Ok(text.and_then(|text| Some(bareboat_wire::json::parse(text.as_bytes()).ok()?.value)))
}

fn gaps(connection: &Connection) -> Result<Vec<(i64, i64)>, ShelfError> {
    let Some(Value::Array(gaps)) = meta(connection, "gaps")? else {
        return Ok(Vec::new());
    };
    let gap = |gap: &Value| {
        let ends = gap.as_array()?;
        Some((ends.first()?.as_i64()?, ends.get(1)?.as_i64()?))
    };
    Ok(gaps.iter().filter_map(gap).collect())
}

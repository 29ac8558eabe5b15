//! Replaces the content of a file by that of another log, and begins the next epoch.

use bareboat_storage::{BackendError, Mark, Record, Refill};
use rusqlite::{Connection, params};

use crate::checksum::{self, Header};
use crate::error::failed;
use crate::mark;
use crate::schema::{FORMAT, INCOMPLETE, pragma};
use crate::writer::{Writer, weight};

/// How much the revision increases above the last known revision: more revisions than a backup is likely to lack.
pub(crate) const JUMP: u64 = 1 << 20;

/// Returns whether the file is complete: it is not being filled.
pub(crate) fn is_complete(connection: &Connection) -> Result<bool, BackendError> {
    let format = pragma(connection, "user_version").map_err(failed)?;
    Ok(format != INCOMPLETE)
}

/// Deletes everything that an interrupted restore left behind.
pub(crate) fn clear(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch("DELETE FROM log")
}

impl Writer {
    pub(crate) fn refill(&mut self, step: Refill<'_>) -> Result<(), BackendError> {
        let done = match step {
            Refill::Begin => self.in_transaction(|writer| {
                clear(&writer.connection)?;
                writer
                    .connection
                    .pragma_update(None, "user_version", INCOMPLETE)
            }),
            Refill::State(records) => self.in_transaction(|writer| {
                records.iter().try_for_each(|record| writer.plant(record))
            }),
            Refill::Start(end) => self.in_transaction(|writer| {
                let floor = "UPDATE progress SET rev = ?1 WHERE name IN ('floor', 'swept')";
                writer.connection.execute(floor, [end.last as i64])?;
                mark::set_epoch(&writer.connection, end.epoch)?;
                mark::keep(&writer.connection, &end)?;
                writer.mark = end;
                Ok(())
            }),
            Refill::Finish => self.connection.pragma_update(None, "user_version", FORMAT),
        };
        done.map_err(failed)?;
        let bytes = match step {
            Refill::State(records) => records.iter().map(weight).sum(),
            _ => 0,
        };
        self.written(bytes);
        Ok(())
    }

    fn in_transaction(
        &mut self,
        act: impl FnOnce(&mut Self) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<()> {
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        let done = act(self).and_then(|()| self.connection.execute_batch("COMMIT"));
        if done.is_err() && !self.connection.is_autocommit() {
            // If this fails too, the next BEGIN fails and reports it.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        done
    }

    /// Inserts a record of the state at the floor, which belongs to no batch.
    fn plant(&mut self, record: &Record) -> rusqlite::Result<()> {
        let resource = self.number(record)?;
        let value = record.value.as_ref().map(|value| value.to_bytes());
        let header = Header {
            revision: record.revision as i64,
            prev: record.prev as i64,
            cluster: &record.cluster,
            resource: &record.resource,
            key: &record.key,
            actor: record.actor.as_deref(),
        };
        let sum = checksum::record(&header, value.as_deref());
        let mut insert = self.connection.prepare_cached(
            "INSERT INTO log (rev, prev, resource, key, sum, actor, value)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?;
        insert.execute(params![
            header.revision,
            header.prev,
            resource,
            header.key,
            sum,
            header.actor,
            value.as_deref()
        ])?;
        Ok(())
    }

    /// Begins another epoch, and returns the end of the log.
    pub(crate) fn next_epoch(&mut self, beyond: u64) -> Result<Mark, BackendError> {
        let last = self.mark.last.max(beyond);
        let raised = last.saturating_add(JUMP).min(i64::MAX as u64);
        self.in_transaction(|writer| {
            raise(&writer.connection, raised)?;
            writer.mark = mark::read(&writer.connection)?;
            Ok(())
        })
        .map_err(failed)?;
        self.written(0);
        Ok(self.mark)
    }
}

/// Raises the revision counter and the floor to `raised`, and begins another epoch.
pub(crate) fn raise(connection: &Connection, raised: u64) -> rusqlite::Result<()> {
    let floor = "UPDATE progress SET rev = ?1 WHERE name = 'floor'";
    connection.execute(floor, [raised as i64])?;
    mark::next_epoch(connection)
}

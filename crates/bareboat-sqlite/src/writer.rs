//! The one connection that writes: a batch is a transaction.

use std::collections::HashMap;
use std::sync::Arc;

use bareboat_storage::Record;
use rusqlite::{Connection, params};

use crate::checkpoint::Checkpoints;

/// Used by one thread at a time.
pub(crate) struct Writer {
    pub(crate) connection: Connection,
    checkpoints: Arc<Checkpoints>,
    resources: HashMap<Arc<str>, i64>,
    /// Joins the two slices of a value.
    scratch: Vec<u8>,
}

/// A scratch buffer that grew for one giant is not kept.
const SCRATCH: usize = 64 << 10;

impl Writer {
    pub(crate) fn new(
        connection: Connection,
        checkpoints: Arc<Checkpoints>,
    ) -> rusqlite::Result<Self> {
        let mut writer = Self {
            connection,
            checkpoints,
            resources: HashMap::new(),
            scratch: Vec::new(),
        };
        writer.learn_resources()?;
        Ok(writer)
    }

    fn learn_resources(&mut self) -> rusqlite::Result<()> {
        let mut names = self.connection.prepare("SELECT name, id FROM resource")?;
        let names = names.query_map([], |row| Ok((row.get::<_, Arc<str>>(0)?, row.get(1)?)))?;
        self.resources = names.collect::<Result<_, _>>()?;
        Ok(())
    }

    pub(crate) fn last_revision(&self) -> rusqlite::Result<u64> {
        // The newest record may be a tombstone that is compacted away; then the floor remembers it.
        let last = "SELECT max((SELECT rev FROM progress WHERE name = 'floor'), \
                    (SELECT coalesce(max(rev), 0) FROM log))";
        let last: i64 = self
            .connection
            .prepare_cached(last)?
            .query_row([], |row| row.get(0))?;
        Ok(last as u64)
    }

    /// Makes a batch durable. After an error the transaction is rolled back.
    pub(crate) fn commit(&mut self, batch: &[Record]) -> rusqlite::Result<()> {
        match self.write(batch) {
            Ok(bytes) => {
                self.checkpoints.written(&self.connection, bytes);
                Ok(())
            }
            Err(error) => {
                if !self.connection.is_autocommit() {
                    // Should it fail too, the next BEGIN does, and tells.
                    let _ = self.connection.execute_batch("ROLLBACK");
                }
                // Numbers given to new resources went with the transaction.
                self.learn_resources()?;
                Err(error)
            }
        }
    }

    fn write(&mut self, batch: &[Record]) -> rusqlite::Result<u64> {
        self.connection
            .prepare_cached("BEGIN IMMEDIATE")?
            .execute([])?;
        let mut insert = self.connection.prepare_cached(
            "INSERT INTO log (rev, prev, resource, key, value) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?;
        let mut bytes = 0;
        for record in batch {
            let resource = match self.resources.get(&record.resource) {
                Some(id) => *id,
                None => {
                    let add = "INSERT INTO resource (name) VALUES (?1)";
                    self.connection.execute(add, [&record.resource])?;
                    let id = self.connection.last_insert_rowid();
                    self.resources.insert(record.resource.clone(), id);
                    id
                }
            };
            self.scratch.clear();
            let value = record.value.as_ref().map(|value| {
                value.append_to(&mut self.scratch);
                self.scratch.as_slice()
            });
            bytes += (record.key.len() + value.map_or(0, <[u8]>::len)) as u64 + 32;
            insert.execute(params![
                record.revision as i64,
                record.prev as i64,
                resource,
                record.key,
                value
            ])?;
        }
        drop(insert);
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        if self.scratch.capacity() > SCRATCH {
            self.scratch = Vec::new();
        }
        Ok(bytes)
    }
}

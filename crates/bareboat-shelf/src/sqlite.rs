//! The shelf in a file of its own: SQLite, one connection that writes, a few that read.

mod indexes;
mod revisions;
mod schema;
mod session;
mod weight;
mod write;

use crate::dialect::Dialect;
use crate::engine::{Batch, Context, Engine, NewIndex, Reading, Written};
use crate::shelf::{Settings, ShelfError};
use bareboat_api::value;
use parking_lot::{Mutex, RwLock};
use revisions::{History, Revisions};
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};
use session::Transaction;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The shelf in a file.
pub(crate) struct Sqlite {
    path: PathBuf,
    /// The number of connections that read and are kept.
    readers: usize,
    /// The memory for pages of one connection, in KiB.
    share: usize,
    writer: Mutex<Writer>,
    idle: Mutex<Vec<Connection>>,
    history: Arc<RwLock<History>>,
}

/// What only one thread at a time has.
struct Writer {
    connection: Connection,
    revisions: Revisions,
    weights: weight::Weights,
}

impl From<rusqlite::Error> for ShelfError {
    fn from(error: rusqlite::Error) -> ShelfError {
        let full = matches!(
            &error,
            rusqlite::Error::SqliteFailure(error, _) if error.code == rusqlite::ErrorCode::DiskFull
        );
        match full {
            true => ShelfError::Full(Box::new(error)),
            false => ShelfError::Database(Box::new(error)),
        }
    }
}

impl Sqlite {
    /// Opens the file, or creates it.
    pub(crate) fn open(path: &Path, settings: &Settings) -> Result<Sqlite, ShelfError> {
        let mut connection = Connection::open(path)?;
        let share = settings.pages / (settings.readers + 2) / 1024;
        schema::prepare(&mut connection, share * 2)?;
        let (revisions, history) = Revisions::begin(&mut connection)?;
        Ok(Sqlite {
            path: path.to_owned(),
            readers: settings.readers,
            share,
            writer: Mutex::new(Writer {
                connection,
                revisions,
                weights: weight::Weights::default(),
            }),
            idle: Mutex::default(),
            history: Arc::new(RwLock::new(history)),
        })
    }

    fn reader(&self) -> Result<Connection, ShelfError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        schema::tune(&connection, self.share)?;
        Ok(connection)
    }
}

impl Engine for Sqlite {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn read(&self, read: Reading<'_>) -> Result<(), ShelfError> {
        let kept = self.idle.lock().pop();
        let connection = match kept {
            Some(connection) => connection,
            None => self.reader()?,
        };
        connection.execute_batch("BEGIN")?;
        let result = read(&Transaction::new(&connection, &self.history));
        let ended = connection.execute_batch("COMMIT");
        if ended.is_ok() {
            let mut idle = self.idle.lock();
            if idle.len() < self.readers {
                idle.push(connection);
            }
        }
        result
    }

    fn change(&self, change: Reading<'_>) -> Result<(), ShelfError> {
        let mut writer = self.writer.lock();
        let transaction = writer.connection.transaction()?;
        change(&Transaction::new(&transaction, &self.history))?;
        Ok(transaction.commit()?)
    }

    fn apply(&self, batches: &[Batch], context: &Context<'_>) -> Result<Written, ShelfError> {
        write::apply(&mut self.writer.lock(), batches, context)
    }

    fn forget(&self, before: i64, most: usize) -> Result<usize, ShelfError> {
        let mut writer = self.writer.lock();
        let transaction = writer.connection.transaction()?;
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let newest: Option<i64> = transaction
            .query_row(
                "SELECT max(rev) FROM (SELECT rev FROM object WHERE gone < ? ORDER BY gone LIMIT ?)",
                params![before, most],
                |row| row.get(0),
            )
            .optional()?
            .flatten();
        let Some(newest) = newest else {
            return Ok(0);
        };
        // Watches learn of the floor before the rows are gone.
        let floor = {
            let mut history = self.history.write();
            history.floor = history.floor.max(newest);
            history.gaps.retain(|gap| gap.1 > newest);
            history.floor
        };
        revisions::set(&transaction, "floor", &value!(floor))?;
        let sql = "DELETE FROM object WHERE id IN (SELECT id FROM object WHERE gone < ? ORDER BY gone LIMIT ?)";
        let removed = transaction.execute(sql, params![before, most])?;
        transaction.commit()?;
        Ok(removed)
    }

    fn is_own(&self, rev: i64) -> bool {
        self.history.read().is_own(rev)
    }

    fn jump(&self, to: i64) -> Result<bool, ShelfError> {
        let Writer {
            connection,
            revisions,
            ..
        } = &mut *self.writer.lock();
        if to <= revisions.last() {
            return Ok(false);
        }
        revisions.jump(connection, &mut self.history.write(), to)?;
        Ok(true)
    }

    fn salt(&self) -> Result<Vec<u8>, ShelfError> {
        let connection = &self.writer.lock().connection;
        connection.execute(
            "INSERT OR IGNORE INTO meta (key, value) VALUES ('salt', lower(hex(randomblob(32))))",
            [],
        )?;
        let sql = "SELECT value FROM meta WHERE key = 'salt'";
        let salt: String = connection.query_row(sql, [], |row| row.get(0))?;
        Ok(salt.into_bytes())
    }

    fn close(&self) -> Result<(), ShelfError> {
        let Writer {
            connection,
            revisions,
            ..
        } = &mut *self.writer.lock();
        revisions.end(connection)
    }

    fn add_index(&self, index: &NewIndex<'_>) -> Result<(), ShelfError> {
        indexes::add(self, index)
    }

    fn drop_index(&self, no: i64, _now: i64) -> Result<(), ShelfError> {
        indexes::remove(self, no)
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Change, Draft, KindInfo, Shelf};
    use bareboat_api::value;

    #[test]
    fn a_full_disk_is_named_and_writes_go_on_when_there_is_room() {
        let dir = tempfile::tempdir().expect("a directory can be made");
        let (path, settings) = (dir.path().join("fleet.db"), Settings::default());
        let shelf = Shelf::open(&path, settings.clone()).expect("a shelf can be opened");
        let (member, _) = shelf.add_member("c1", "").expect("a member can be added");
        let kind = KindInfo {
            group: String::new(),
            resource: "pods".to_owned(),
            kind: "Pod".to_owned(),
            namespaced: false,
        };
        let kind = shelf.add_kind(&kind).expect("a kind can be added");
        let directory = shelf.directory();
        drop(shelf);
        let engine = Sqlite::open(&path, &settings).expect("a shelf can be opened");
        let context = Context {
            directory: &directory,
            names: 0,
            now: 1,
            watched: false,
            most_rows: 1000,
            most_bytes: 1 << 30,
            fence: None,
        };
        let put = |number: usize| {
            let object = value!({
                "apiVersion": "v1", "kind": "Pod", "spec": {"text": ("x".repeat(5000))},
                "metadata": {"name": (format!("p{number}")), "uid": (format!("u{number}")), "resourceVersion": "1"},
            });
            let draft = Draft::new("c1", object).expect("the object is well formed");
            let batch = Batch {
                member,
                kind,
                changes: vec![Change::Put(Box::new(draft))],
                progress: None,
            };
            engine.apply(&[batch], &context).map(|written| written.last)
        };
        let first = put(0).expect("there is room");
        // The file may not grow: SQLite says the same as on a full disk.
        let limit = |pages: i64| {
            let writer = engine.writer.lock();
            let limited =
                writer
                    .connection
                    .pragma_update_and_check(None, "max_page_count", pages, |row| row.get(0));
            limited.map(|_: i64| ()).expect("pages can be limited");
        };
        limit(1);
        let refused = (1..10).find_map(|number| put(number).err());
        let refused = refused.expect("the disk is full");
        assert!(refused.is_full(), "{refused}");
        let mut count = 0;
        let read = engine.read(&mut |session| {
            count = session.standing()?.last;
            Ok(())
        });
        read.expect("reads go on");
        assert!(count >= first, "{count} {first}");
        limit(1 << 20);
        let next = put(20).expect("there is room again");
        assert!(next > first);
    }
}

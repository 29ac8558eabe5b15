//! A file that is opened for reading only, even while a server writes to it: for backups and checks.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bareboat_storage::{
    Appended, Backend, BackendError, BackendStats, Batch, ChangePage, Mark, PageLimit, Record,
    Stop, Sweep, Written, examine::Setting,
};
use rusqlite::Connection;

use crate::error::{SqliteError, failed};
use crate::verify::History;
use crate::{mark, read, refill, schema};

/// A log in a SQLite file that another process may have open.
#[derive(Debug)]
pub struct SqliteReader {
    path: PathBuf,
}

impl SqliteReader {
    /// Opens the file at `path`, which must exist.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SqliteError> {
        let path = path.as_ref().to_owned();
        let at = |error| SqliteError::at(&path, error);
        let connection = schema::open_reader(&path).map_err(at)?;
        schema::check(&connection, &path)?;
        Ok(Self { path })
    }

    fn connect(&self) -> Result<Connection, BackendError> {
        schema::open_reader(&self.path).map_err(failed)
    }
}

fn refused() -> BackendError {
    BackendError::Failed("the file is open for reading only".into())
}

impl Backend for SqliteReader {
    fn append(&self, _: &Mark, _: &Batch) -> Result<Appended, BackendError> {
        Err(refused())
    }

    fn load(&self, after: u64, visit: &mut dyn FnMut(Record)) -> Result<Mark, BackendError> {
        self.dump(after, visit, &Stop::default())
    }

    fn dump(
        &self,
        after: u64,
        visit: &mut dyn FnMut(Record),
        stop: &Stop,
    ) -> Result<Mark, BackendError> {
        read::dump(&self.path, after, visit, stop)
    }

    fn is_complete(&self) -> Result<bool, BackendError> {
        refill::is_complete(&self.connect()?)
    }

    fn read_since(
        &self,
        resource: Option<&str>,
        after: u64,
        upto: u64,
        limit: PageLimit,
        stop: &Stop,
    ) -> Result<ChangePage, BackendError> {
        let page = read::since(&self.path, resource, after, upto, limit, stop)?;
        check_floor(self.compacted(), after)?;
        Ok(page)
    }

    fn read_at(
        &self,
        resource: &str,
        revision: u64,
        visit: &mut dyn FnMut(Record),
        stop: &Stop,
    ) -> Result<(), BackendError> {
        read::at(&self.path, resource, revision, visit, stop)?;
        check_floor(self.compacted(), revision)
    }

    fn compact(&self, _: u64, _: usize) -> Result<Sweep, BackendError> {
        Err(refused())
    }

    fn history(&self, visit: &mut dyn FnMut(Written)) -> Result<(), BackendError> {
        let history = History::read(&self.connect()?, &self.path, self.compacted());
        let history = history.map_err(|error| BackendError::Failed(Box::new(error)))?;
        history.written.into_iter().for_each(visit);
        Ok(())
    }

    fn places(&self, visit: &mut dyn FnMut(Mark)) -> Result<(), BackendError> {
        mark::each(&self.connect()?, self.compacted(), visit).map_err(failed)
    }

    fn settings(&self) -> Result<Vec<Setting>, BackendError> {
        let connection = self.connect()?;
        let text = |pragma: &str| -> Result<String, BackendError> {
            let value = connection.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get(0));
            value.map_err(failed)
        };
        let (journal, check) = (text("journal_mode")?, text("quick_check(1)")?);
        let good = (journal == "wal", check == "ok");
        let left = "SELECT p.rev, (SELECT count(*) FROM log WHERE rev > p.rev
                AND rev <= (SELECT rev FROM progress WHERE name = 'floor'))
            FROM progress p WHERE name = 'swept'";
        let left = connection.query_row(left, [], |row| Ok((row.get(0)?, row.get(1)?)));
        let (swept, left): (i64, i64) = left.map_err(failed)?;
        Ok(vec![
            Setting::swept(swept as u64, left as u64),
            Setting::judged(
                "journal_mode",
                journal,
                good.0,
                "start a server with it once",
            ),
            Setting::judged("quick_check", check, good.1, "restore a backup"),
        ])
    }

    fn revision_before(&self, time: SystemTime) -> Result<u64, BackendError> {
        read::before(&self.connect()?, time).map_err(failed)
    }

    fn compacted(&self) -> u64 {
        let floor = self
            .connect()
            .and_then(|connection| schema::floor(&connection).map_err(failed));
        // A file that cannot be read fails at the next read.
        floor.unwrap_or(0)
    }

    fn mark(&self) -> Result<Mark, BackendError> {
        mark::read(&self.connect()?).map_err(failed)
    }

    fn stats(&self) -> BackendStats {
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |data| data.len());
        let free = self.connect().and_then(|connection| {
            let free = schema::pragma(&connection, "freelist_count").map_err(failed)?;
            Ok(free * schema::pragma(&connection, "page_size").map_err(failed)?)
        });
        BackendStats {
            bytes: size(&self.path) + size(&schema::beside(&self.path, "-wal")),
            free_bytes: free.unwrap_or(0).unsigned_abs(),
            engine: "sqlite",
            ..BackendStats::default()
        }
    }
}

fn check_floor(floor: u64, revision: u64) -> Result<(), BackendError> {
    match revision < floor {
        true => Err(BackendError::Compacted { floor }),
        false => Ok(()),
    }
}

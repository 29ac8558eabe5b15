//! The one connection that writes: a batch is a transaction.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bareboat_storage::{BackendError, Record, Sweep};
use rusqlite::{Connection, ffi, params};

use crate::checkpoint::{Checkpoints, Restart};
use crate::checksum::{self, Header};
use crate::compact::{self, Swept};
use crate::error::{code, failed, is_busy};
use crate::place::Place;
use crate::reserve::{Reserve, no_space_at};
use crate::schema::beside;
use crate::{SqliteError, SqliteOptions, clock};

/// Used by one thread at a time.
pub(crate) struct Writer {
    pub(crate) connection: Connection,
    checkpoints: Arc<Checkpoints>,
    resources: HashMap<Arc<str>, i64>,
    /// Joins the two slices of a value.
    scratch: Vec<u8>,
    /// The time of the last batch: times never go back.
    at: i64,
    place: Place,
    reserve: Reserve,
    probe: PathBuf,
    /// When a full disk may be answered with a checkpoint again.
    restart_after: Option<Instant>,
}

/// A scratch buffer that grew for one giant is not kept.
const SCRATCH: usize = 64 << 10;
/// A full disk is answered with a checkpoint at most this often.
const BETWEEN_RESTARTS: Duration = Duration::from_secs(1);
/// How long a checkpoint that is under way is waited for.
const RESTART_PATIENCE: Duration = Duration::from_millis(500);

/// How often a batch is written whose writes fail although there is space.
const TRIES: u32 = 3;

/// How far a transaction had come when it failed.
enum Stage {
    /// Nothing was written.
    Begin,
    /// Rows were, but no commit.
    Insert,
    /// The commit may or may not be in the write-ahead log.
    Commit,
}

impl Writer {
    pub(crate) fn new(
        connection: Connection,
        path: &Path,
        checkpoints: Arc<Checkpoints>,
        options: &SqliteOptions,
        at: i64,
    ) -> Result<Self, SqliteError> {
        let place = Place::note(path).map_err(|source| SqliteError::Lock {
            path: path.to_owned(),
            source,
        })?;
        let mut writer = Self {
            connection,
            checkpoints,
            resources: HashMap::new(),
            scratch: Vec::new(),
            at,
            place,
            reserve: Reserve::open(beside(path, ".reserve"), options.reserve_bytes),
            probe: beside(path, ".probe"),
            restart_after: None,
        };
        writer.learn_resources()?;
        Ok(writer)
    }

    fn learn_resources(&mut self) -> rusqlite::Result<()> {
        let names = "SELECT name, id FROM resource WHERE cluster = ''";
        let mut names = self.connection.prepare(names)?;
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

    /// Makes a batch durable. After `Full` and `Busy` nothing of it was written.
    pub(crate) fn commit(&mut self, batch: &[Record]) -> Result<(), BackendError> {
        let mut written = self.try_commit(batch);
        if matches!(written, Err(BackendError::Full(_))) {
            let frees = frees(batch);
            if self.restart_log(frees) {
                written = self.try_commit(batch);
            }
            if matches!(written, Err(BackendError::Full(_))) && frees && self.reserve.release() {
                self.restart_log(true);
                written = self.try_commit(batch);
            }
        }
        let bytes = written?;
        // An answer may only be given for what can be found again.
        self.place
            .check()
            .map_err(|why| BackendError::Failed(why.into()))?;
        self.checkpoints.written(&self.connection, bytes);
        self.reserve.refill();
        Ok(())
    }

    /// Begins the write-ahead log at its front, so that the space it has is used again. Where it matters a checkpoint
    /// that is under way is waited for.
    fn restart_log(&mut self, it_matters: bool) -> bool {
        let now = Instant::now();
        if !it_matters && self.restart_after.is_some_and(|after| now < after) {
            return false;
        }
        self.restart_after = Some(now + BETWEEN_RESTARTS);
        let deadline = now + RESTART_PATIENCE;
        loop {
            match self.checkpoints.restart(&self.connection) {
                Restart::Done => return true,
                Restart::Hindered if it_matters && Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                _ => return false,
            }
        }
    }

    fn try_commit(&mut self, batch: &[Record]) -> Result<u64, BackendError> {
        let mut tries = 0;
        loop {
            let (stage, error) = match self.write(batch) {
                Ok(bytes) => return Ok(bytes),
                Err(failure) => failure,
            };
            if !self.connection.is_autocommit() {
                // Should it fail too, the next BEGIN does, and tells.
                let _ = self.connection.execute_batch("ROLLBACK");
            }
            // Numbers given to new resources went with the transaction.
            self.learn_resources().map_err(failed)?;
            let torn = matches!(stage, Stage::Insert | Stage::Commit)
                && code(&error) == ffi::SQLITE_IOERR_WRITE;
            if !torn {
                return Err(self.judge(stage, error));
            }
            // A write that failed left no whole commit behind, so it is known that nothing was written. SQLite does not
            // tell whether a quota was the reason.
            let bytes = batch.iter().map(weight).sum::<u64>();
            tries += 1;
            match no_space_at(&self.probe, bytes as usize) {
                true => return Err(BackendError::Full(Box::new(error))),
                false if tries < TRIES => continue,
                false => return Err(BackendError::Failed(Box::new(error))),
            }
        }
    }

    /// What a failure means for the batch.
    fn judge(&self, stage: Stage, error: rusqlite::Error) -> BackendError {
        let code = code(&error);
        match stage {
            Stage::Begin => failed(error),
            // The index of the write-ahead log grows after the log itself was written and synced.
            Stage::Commit if code == ffi::SQLITE_IOERR_SHMSIZE => match self.overwrite() {
                Ok(()) => BackendError::Full(Box::new(error)),
                Err(_) => BackendError::Failed(Box::new(error)),
            },
            Stage::Insert => failed(error),
            Stage::Commit if is_busy(&error) => BackendError::Failed(Box::new(error)),
            Stage::Commit => failed(error),
        }
    }

    /// Writes a page over the commit that is in the log but must not be found there after a crash.
    fn overwrite(&self) -> rusqlite::Result<()> {
        // A row that stays the same would not be written at all.
        self.connection.execute_batch(
            "INSERT INTO progress VALUES ('overwritten', 1)
             ON CONFLICT (name) DO UPDATE SET rev = rev + 1",
        )
    }

    fn write(&mut self, batch: &[Record]) -> Result<u64, (Stage, rusqlite::Error)> {
        let begun = self
            .connection
            .prepare_cached("BEGIN IMMEDIATE")
            .and_then(|mut begin| begin.execute([]));
        begun.map_err(|error| (Stage::Begin, error))?;
        let bytes = self.insert(batch).map_err(|error| (Stage::Insert, error))?;
        let committed = self
            .connection
            .prepare_cached("COMMIT")
            .and_then(|mut commit| commit.execute([]));
        committed.map_err(|error| (Stage::Commit, error))?;
        if self.scratch.capacity() > SCRATCH {
            self.scratch = Vec::new();
        }
        Ok(bytes)
    }

    /// The rows of a batch; tells how much they add to the write-ahead log.
    fn insert(&mut self, batch: &[Record]) -> rusqlite::Result<u64> {
        let mut insert = self.connection.prepare_cached(
            "INSERT INTO log (rev, prev, resource, key, sum, size, at, bytes, batch_sum, value)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?;
        let mut sums = checksum::Batch::default();
        let mut bytes = 0;
        for (index, record) in batch.iter().enumerate() {
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
            let header = Header {
                revision: record.revision as i64,
                prev: record.prev as i64,
                resource: &record.resource,
                key: &record.key,
            };
            let sum = checksum::record(&header, value);
            sums.add(sum);
            bytes += (record.key.len() + value.map_or(0, <[u8]>::len)) as u64;
            let (size, end) = match index + 1 == batch.len() {
                true => {
                    self.at = self.at.max(clock::now_millis());
                    let (size, bytes) = (batch.len() as i64, bytes as i64);
                    let sums = std::mem::take(&mut sums);
                    let sum = sums.finish(size, header.revision, self.at, bytes);
                    (size, Some((self.at, bytes, sum)))
                }
                false => (0, None),
            };
            insert.execute(params![
                header.revision,
                header.prev,
                resource,
                record.key,
                sum,
                size,
                end.map(|end| end.0),
                end.map(|end| end.1),
                end.map(|end| end.2),
                value
            ])?;
        }
        Ok(bytes + 64 * batch.len() as u64)
    }

    /// A slice of compaction, with the reserve if there is no other space.
    pub(crate) fn compact(&mut self, floor: u64, rows: usize) -> Result<Swept, BackendError> {
        let mut swept = compact::slice(&mut self.connection, floor, rows).map_err(put_off);
        if matches!(swept, Err(BackendError::Full(_))) {
            self.restart_log(true);
            self.reserve.release();
            swept = compact::slice(&mut self.connection, floor, rows).map_err(put_off);
        }
        let swept = swept?;
        if swept.pages > 0 {
            self.checkpoints.compacted(&self.connection, swept.pages);
        }
        if swept.sweep == Sweep::Done {
            // The next write may be hours away: the space is given back now.
            self.checkpoints.settle();
            self.reserve.refill();
        }
        Ok(swept)
    }
}

/// What a failed slice of compaction means: as long as only a write failed, it is done again later.
fn put_off(error: rusqlite::Error) -> BackendError {
    match code(&error) {
        ffi::SQLITE_IOERR_WRITE => BackendError::Full(Box::new(error)),
        _ => failed(error),
    }
}

fn weight(record: &Record) -> u64 {
    (record.key.len() + record.value.as_ref().map_or(0, |value| value.len())) as u64
}

/// Whether a batch leads to less being stored: deletions, and what marks objects as being deleted.
fn frees(batch: &[Record]) -> bool {
    const BEGUN: &[u8] = br#""deletionTimestamp":""#;
    batch.iter().all(|record| match &record.value {
        None => true,
        Some(value) => {
            let bytes = value.to_bytes();
            bytes.windows(BEGUN.len()).any(|window| window == BEGUN)
        }
    })
}

//! The only connection that writes. Each batch is a transaction.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bareboat_storage::{BackendError, Batch, Chain, Mark, Record, Sweep};
use rusqlite::{Connection, ffi, params};

use crate::checkpoint::{Checkpoints, Restart};
use crate::checksum::{self, Header};
use crate::compact::{self, Swept};
use crate::error::{code, failed, is_busy};
use crate::open_files::OpenFiles;
use crate::reserve::{Obstacle, Reserve, obstacle_at};
use crate::schema::beside;
use crate::{SqliteError, SqliteOptions, clock, mark};

/// The writer, used by one thread at a time.
pub(crate) struct Writer {
    pub(crate) connection: Connection,
    /// The end of the log.
    pub(crate) mark: Mark,
    checkpoints: Arc<Checkpoints>,
    /// The numbers of resources by logical cluster and name.
    resources: Resources,
    /// A buffer that joins the two slices of a value.
    scratch: Vec<u8>,
    /// The time of the last batch. Times never decrease from batch to batch.
    at: i64,
    files: OpenFiles,
    reserve: Reserve,
    probe: PathBuf,
    /// The earliest time at which a full disk may cause a checkpoint again.
    restart_after: Option<Instant>,
}

/// Numbers of resources by logical cluster and name.
type Resources = HashMap<(Arc<str>, Arc<str>), i64>;

/// The maximum size of the scratch buffer that is kept.
const SCRATCH: usize = 64 << 10;
/// The minimum time between two checkpoints caused by a full disk.
const BETWEEN_RESTARTS: Duration = Duration::from_secs(1);
/// How long to wait for a running checkpoint.
const RESTART_PATIENCE: Duration = Duration::from_millis(500);

/// How often a batch is tried when its writes fail although there is space.
const TRIES: u32 = 3;

/// The stage at which a transaction failed.
enum Stage {
    /// Nothing was written.
    Begin,
    /// Rows were written, but not committed.
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
        let files = OpenFiles::note(path).map_err(|source| SqliteError::Lock {
            path: path.to_owned(),
            source,
        })?;
        let mut writer = Self {
            mark: mark::read(&connection)?,
            connection,
            checkpoints,
            resources: HashMap::new(),
            scratch: Vec::new(),
            at,
            files,
            reserve: Reserve::open(beside(path, ".reserve"), options.reserve_bytes),
            probe: beside(path, ".probe"),
            restart_after: None,
        };
        writer.learn_resources()?;
        Ok(writer)
    }

    fn learn_resources(&mut self) -> rusqlite::Result<()> {
        let names = "SELECT cluster, name, id FROM resource";
        let mut names = self.connection.prepare(names)?;
        let names = names.query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))?;
        self.resources = names.collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Makes a batch durable, and returns the end of the log. After `Full` and `Busy` nothing of the batch was written.
    pub(crate) fn append(&mut self, base: &Mark, batch: &Batch) -> Result<Mark, BackendError> {
        if base.last != self.mark.last {
            let why = format!("the file ends at revision {}", self.mark.last);
            return Err(BackendError::Failed(why.into()));
        }
        let mut written = self.try_commit(batch);
        if matches!(written, Err(BackendError::Full(_))) {
            let frees = frees(&batch.records);
            if self.restart_log(frees) {
                written = self.try_commit(batch);
            }
            if matches!(written, Err(BackendError::Full(_))) && frees && self.reserve.release() {
                self.restart_log(true);
                written = self.try_commit(batch);
            }
        }
        let (bytes, end) = written?;
        // A write may be acknowledged only if the file is still at its path.
        self.files
            .check()
            .map_err(|why| BackendError::Failed(why.into()))?;
        self.mark = end;
        self.checkpoints.written(&self.connection, bytes);
        self.reserve.refill();
        Ok(end)
    }

    /// Restarts the write-ahead log from its front, so that its space is reused. Waits for a running checkpoint if
    /// `it_matters`.
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

    fn try_commit(&mut self, batch: &Batch) -> Result<(u64, Mark), BackendError> {
        let mut tries = 0;
        loop {
            let (stage, error) = match self.write(batch) {
                Ok(written) => return Ok(written),
                Err(failure) => failure,
            };
            if !self.connection.is_autocommit() {
                // If this fails too, the next BEGIN fails and reports it.
                let _ = self.connection.execute_batch("ROLLBACK");
            }
            // Numbers of new resources were rolled back with the transaction.
            self.learn_resources().map_err(failed)?;
            let torn = matches!(stage, Stage::Insert | Stage::Commit)
                && code(&error) == ffi::SQLITE_IOERR_WRITE;
            if !torn {
                return Err(self.judge(stage, error));
            }
            // A failed write left no complete commit, so nothing was written. SQLite does not report whether a quota
            // or a read-only disk was the reason.
            let bytes = batch.records.iter().map(weight).sum::<u64>();
            tries += 1;
            match obstacle_at(&self.probe, bytes as usize) {
                Some(Obstacle::Space) => return Err(BackendError::Full(Box::new(error))),
                Some(Obstacle::ReadOnly) => return Err(BackendError::ReadOnly(Box::new(error))),
                None if tries < TRIES => continue,
                None => return Err(BackendError::Failed(Box::new(error))),
            }
        }
    }

    /// Converts a failure to the error of the batch.
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

    /// Overwrites a commit that is in the log but must not be found there after a crash.
    fn overwrite(&self) -> rusqlite::Result<()> {
        // SQLite would not write an unchanged row.
        self.connection.execute_batch(
            "INSERT INTO progress VALUES ('overwritten', 1)
             ON CONFLICT (name) DO UPDATE SET rev = rev + 1",
        )
    }

    fn write(&mut self, batch: &Batch) -> Result<(u64, Mark), (Stage, rusqlite::Error)> {
        let begun = self
            .connection
            .prepare_cached("BEGIN IMMEDIATE")
            .and_then(|mut begin| begin.execute([]));
        begun.map_err(|error| (Stage::Begin, error))?;
        let written = self.insert(batch).map_err(|error| (Stage::Insert, error))?;
        let committed = self
            .connection
            .prepare_cached("COMMIT")
            .and_then(|mut commit| commit.execute([]));
        committed.map_err(|error| (Stage::Commit, error))?;
        if self.scratch.capacity() > SCRATCH {
            self.scratch = Vec::new();
        }
        Ok(written)
    }

    /// Inserts the rows of `batch`. Returns the bytes that they add to the write-ahead log, and the end of the log
    /// after them.
    fn insert(&mut self, batch: &Batch) -> rusqlite::Result<(u64, Mark)> {
        let records = &batch.records;
        let mut insert = match records.len() {
            0 | 1 => None,
            _ => Some(self.connection.prepare_cached(
                "INSERT INTO log (rev, prev, resource, key, sum, actor, value)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?),
        };
        let mut sums = checksum::Batch::default();
        let mut chain = Chain::after(&self.mark.digest);
        let mut end = self.mark;
        let mut bytes = 0;
        for (index, record) in records.iter().enumerate() {
            let resource = number(&self.connection, &mut self.resources, record)?;
            self.scratch.clear();
            let value = record.value.as_ref().map(|value| {
                value.append_to(&mut self.scratch);
                self.scratch.as_slice()
            });
            let header = Header {
                revision: record.revision as i64,
                prev: record.prev as i64,
                cluster: &record.cluster,
                resource: &record.resource,
                key: &record.key,
                actor: record.actor.as_deref(),
            };
            let sum = checksum::record(&header, value);
            sums.add(sum);
            bytes += (record.key.len() + value.map_or(0, <[u8]>::len)) as u64;
            chain.add(record, value, &[]);
            if let Some(insert) = &mut insert
                && index + 1 < records.len()
            {
                insert.execute(params![
                    header.revision,
                    header.prev,
                    resource,
                    record.key,
                    sum,
                    header.actor,
                    value
                ])?;
                continue;
            }
            self.at = self.at.max(clock::now_millis());
            let size = records.len() as i64;
            let sums = std::mem::take(&mut sums);
            let batch_sum = sums.finish(size, header.revision, self.at, bytes as i64);
            end.last = record.revision;
            end.digest = chain.digest();
            // The last row of a batch has the columns of the batch.
            let mut insert = self.connection.prepare_cached(
                "INSERT INTO log (rev, prev, resource, key, sum, size, at, bytes, batch_sum, epoch, id, writer, digest, actor, value)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
            )?;
            insert.execute(params![
                header.revision,
                header.prev,
                resource,
                record.key,
                sum,
                size,
                self.at,
                bytes as i64,
                batch_sum,
                end.epoch as i64,
                batch.id.to_be_bytes(),
                batch.writer.to_be_bytes(),
                end.digest.0,
                header.actor,
                value
            ])?;
        }
        Ok((bytes + 64 * records.len() as u64, end))
    }

    /// Returns the number of the record's resource.
    pub(crate) fn number(&mut self, record: &Record) -> rusqlite::Result<i64> {
        number(&self.connection, &mut self.resources, record)
    }

    /// Starts a checkpoint if it is due. `bytes` were added to the write-ahead log.
    pub(crate) fn written(&self, bytes: u64) {
        self.checkpoints.written(&self.connection, bytes);
    }

    /// Runs a slice of compaction. Uses the reserve if there is no other space.
    pub(crate) fn compact(&mut self, floor: u64, rows: usize) -> Result<Swept, BackendError> {
        let mut swept =
            compact::slice(&mut self.connection, &self.mark, floor, rows).map_err(put_off);
        if matches!(swept, Err(BackendError::Full(_))) {
            self.restart_log(true);
            self.reserve.release();
            swept = compact::slice(&mut self.connection, &self.mark, floor, rows).map_err(put_off);
        }
        let swept = swept?;
        if swept.pages > 0 {
            self.checkpoints.compacted(&self.connection, swept.pages);
        }
        if swept.sweep == Sweep::Done {
            // The next write may be hours away, so the space is released now.
            self.checkpoints.settle();
            self.reserve.refill();
        }
        Ok(swept)
    }
}

/// Returns the number of the record's resource. Assigns a number if the resource is new.
fn number(
    connection: &Connection,
    resources: &mut Resources,
    record: &Record,
) -> rusqlite::Result<i64> {
    let name = (record.cluster.clone(), record.resource.clone());
    if let Some(id) = resources.get(&name) {
        return Ok(*id);
    }
    let add = "INSERT INTO resource (cluster, name) VALUES (?1, ?2)";
    connection.execute(add, [&name.0, &name.1])?;
    let id = connection.last_insert_rowid();
    resources.insert(name, id);
    Ok(id)
}

/// Converts the error of a failed slice of compaction. If only a write failed, the slice is retried later.
fn put_off(error: rusqlite::Error) -> BackendError {
    match code(&error) {
        ffi::SQLITE_IOERR_WRITE => BackendError::Full(Box::new(error)),
        _ => failed(error),
    }
}

/// Returns an estimate of the bytes that a record adds to the write-ahead log.
pub(crate) fn weight(record: &Record) -> u64 {
    (record.key.len() + record.value.as_ref().map_or(0, |value| value.len())) as u64
}

/// Returns whether a batch frees space: its records delete objects, or mark objects as being deleted.
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

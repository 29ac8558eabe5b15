//! The embedded default store: the log of `bareboat-storage` in one SQLite file.
//!
//! Rows and pragmas only. Order, conflicts and caches are decided above; objects are bytes here.
//!
//! * Write-ahead log with `synchronous=FULL`: a batch is one transaction and one fsync.
//! * No index beside the primary key: the log is appended and read in its own order, and lookups happen in memory.
//! * Checkpoints run beside the writer (see `checkpoint`), since SQLite's own would stall a commit now and then.
//! * A lock file keeps a second server out; the kernel releases it however the process ends.

mod checkpoint;
mod compact;
mod error;
mod lock;
mod read;
mod schema;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bareboat_storage::{
    Backend, BackendError, BackendStats, ChangePage, Outcome, PageLimit, Record, Stop, Sweep,
};
use parking_lot::Mutex;

use checkpoint::Checkpoints;
pub use error::SqliteError;
use error::{closed, failed};
use lock::Lock;
use writer::Writer;

/// What may be set about the file.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// Page cache of the writer in KiB; reads come from memory above, so it may be small.
    pub cache_kib: u32,
    /// Bytes of write-ahead log at which a checkpoint starts beside the writer.
    pub checkpoint_bytes: u64,
    /// Bytes of write-ahead log at which the writer itself stops and finishes the checkpoint.
    pub checkpoint_limit_bytes: u64,
    /// The file grows no larger; `None` leaves it to the disk.
    pub max_bytes: Option<u64>,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            cache_kib: 1024,
            checkpoint_bytes: 8 << 20,
            checkpoint_limit_bytes: 64 << 20,
            max_bytes: None,
        }
    }
}

/// A log in a SQLite file, open for this process alone.
pub struct Sqlite {
    path: PathBuf,
    writer: Mutex<Option<Writer>>,
    checkpoints: Arc<Checkpoints>,
    floor: AtomicU64,
    free_bytes: AtomicU64,
    closed: AtomicBool,
    lock: Mutex<Option<Lock>>,
}

impl Sqlite {
    /// Opens or creates the file at `path`.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SqliteError> {
        Self::open_with(path, SqliteOptions::default())
    }

    /// Opens or creates the file at `path`, with options.
    pub fn open_with(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self, SqliteError> {
        let path = path.as_ref().to_owned();
        let lock = Lock::take(&path)?;
        let (connection, floor) = schema::open(&path, &options)?;
        let checkpoints = Arc::new(Checkpoints::new(path.clone(), &options));
        let writer = Writer::new(connection, checkpoints.clone()).map_err(SqliteError::from)?;
        Ok(Self {
            path,
            writer: Mutex::new(Some(writer)),
            checkpoints,
            floor: AtomicU64::new(floor),
            free_bytes: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            lock: Mutex::new(Some(lock)),
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn with_writer<T>(
        &self,
        act: impl FnOnce(&mut Writer) -> Result<T, BackendError>,
    ) -> Result<T, BackendError> {
        act(self.writer.lock().as_mut().ok_or_else(closed)?)
    }

    /// Fails after the file was closed, without waiting for a commit that is under way.
    fn check_open(&self) -> Result<(), BackendError> {
        match self.closed.load(Ordering::Acquire) {
            true => Err(closed()),
            false => Ok(()),
        }
    }

    /// Fails if what was read between `revision` and now may have been compacted meanwhile.
    fn check_floor(&self, revision: u64) -> Result<(), BackendError> {
        let floor = self.compacted();
        if revision < floor {
            return Err(BackendError::Compacted { floor });
        }
        Ok(())
    }
}

impl Backend for Sqlite {
    fn commit(&self, batch: &[Record]) -> Result<Vec<Outcome>, BackendError> {
        self.with_writer(|writer| writer.commit(batch).map_err(failed))?;
        Ok(batch.iter().map(|r| Outcome::Written(r.revision)).collect())
    }

    fn load(&self, after: u64, visit: &mut dyn FnMut(Record)) -> Result<(), BackendError> {
        self.with_writer(|writer| read::load(&writer.connection, after, visit))
    }

    fn read_since(
        &self,
        resource: Option<&str>,
        after: u64,
        upto: u64,
        limit: PageLimit,
        stop: &Stop,
    ) -> Result<ChangePage, BackendError> {
        self.check_open()?;
        self.check_floor(after)?;
        let page = read::since(&self.path, resource, after, upto, limit, stop)?;
        self.check_floor(after)?;
        Ok(page)
    }

    fn read_at(
        &self,
        resource: &str,
        revision: u64,
        visit: &mut dyn FnMut(Record),
        stop: &Stop,
    ) -> Result<(), BackendError> {
        self.check_open()?;
        self.check_floor(revision)?;
        read::at(&self.path, resource, revision, visit, stop)?;
        self.check_floor(revision)
    }

    fn compact(&self, upto: u64, rows: usize) -> Result<Sweep, BackendError> {
        self.with_writer(|writer| {
            let last = writer.last_revision().map_err(failed)?;
            // Raised before the first row goes: a read that ends later knows that it may have missed something.
            let floor = self.compacted().max(upto.min(last));
            self.floor.store(floor, Ordering::Release);
            let swept = compact::slice(&mut writer.connection, floor, rows).map_err(failed)?;
            self.free_bytes.store(swept.free_bytes, Ordering::Relaxed);
            Ok(swept.sweep)
        })
    }

    fn compacted(&self) -> u64 {
        self.floor.load(Ordering::Acquire)
    }

    fn last_revision(&self) -> Result<u64, BackendError> {
        self.with_writer(|writer| writer.last_revision().map_err(failed))
    }

    fn stats(&self) -> BackendStats {
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |data| data.len());
        BackendStats {
            bytes: size(&self.path) + size(&schema::beside(&self.path, "-wal")),
            free_bytes: self.free_bytes.load(Ordering::Relaxed),
        }
    }

    fn close(&self) -> Result<(), BackendError> {
        self.closed.store(true, Ordering::Release);
        let writer = self.writer.lock().take();
        self.checkpoints.finish();
        let closed = writer.map_or(Ok(()), |writer| {
            // The last connection to leave copies the write-ahead log into the file and removes it.
            writer
                .connection
                .close()
                .map_err(|(_, error)| failed(error))
        });
        drop(self.lock.lock().take());
        closed
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::warn!(%error, "the file was not closed cleanly");
        }
    }
}

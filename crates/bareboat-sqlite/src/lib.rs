//! The embedded default store: the log of `bareboat-storage` in one SQLite file.
//!
//! This crate handles rows and pragmas. The layers above decide order, conflicts and caching;
//! objects are bytes here.
//!
//! * Write-ahead log with `synchronous=FULL`: a batch is one transaction and one fsync.
//! * There is no index besides the primary key: the log is appended and read in its own order, and lookups happen in
//!   memory.
//! * Checkpoints run on a separate thread (see `checkpoint`), because SQLite's own checkpoints would delay some
//!   commits.
//! * A lock file keeps a second server out. The kernel releases the lock when the process ends for any reason.
//! * Every record and every batch has a checksum (see `checksum`). A batch also has a time, an id, and a digest of the
//!   log up to its end. Older formats are upgraded when a file is opened (see `migrate`).
//! * A reserve of disk space is kept for deletions and compaction (see `reserve`).
//!
//! ```
//! use bareboat_sqlite::Sqlite;
//! use bareboat_storage::{Store, StoreOptions, Write};
//! use std::sync::Arc;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let value = r#"{"apiVersion":"sea.example.com/v1","kind":"Boat","metadata":{"name":"argo"}}"#;
//! for start in 0..2 {
//!     let backend = Arc::new(Sqlite::open(folder.path().join("boats.db"))?);
//!     let store = Store::open(backend, StoreOptions::default())?;
//!     let boats = store.resource("sea.example.com/boats");
//!     if start == 0 {
//!         store.commit(Write::create(&boats, "argo", value.into())).await?;
//!     }
//!     assert!(boats.get("argo").is_some());
//!     store.close().await;
//! }
//! # Ok(()) }
//! ```

mod checkpoint;
mod checksum;
mod clock;
mod compact;
mod error;
mod lock;
mod mark;
mod migrate;
mod open_files;
mod options;
mod read;
mod reader;
mod refill;
mod reserve;
mod restore;
mod rewrite;
mod schema;
mod verify;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::SystemTime;

use bareboat_storage::{
    Appended, Backend, BackendError, BackendStats, Batch, ChangePage, ChangeValue, Mark, PageLimit,
    Record, Refill, Rewritten, Stop, Sweep, Written,
};
use parking_lot::Mutex;

use checkpoint::Checkpoints;
pub use error::SqliteError;
use error::{closed, failed};
use lock::Lock;
pub use options::SqliteOptions;
pub use reader::SqliteReader;
pub use restore::{Restored, last_revision, raise};
pub use rewrite::{RewriteError, inspect, rewrite};
use verify::History;
use writer::Writer;

/// A log in a SQLite file, open for this process only.
pub struct Sqlite {
    path: PathBuf,
    writer: Mutex<Option<Writer>>,
    checkpoints: Arc<Checkpoints>,
    /// The times at which the history was written, until the store reads them.
    history: Mutex<Option<Vec<Written>>>,
    floor: AtomicU64,
    free_bytes: AtomicU64,
    closed: AtomicBool,
    lock: Mutex<Option<Lock>>,
}

impl std::fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sqlite")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Sqlite {
    /// Opens or creates the file at `path`.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SqliteError> {
        Self::open_with(path, SqliteOptions::default())
    }

    /// Opens or creates the file at `path` with `options`.
    pub fn open_with(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self, SqliteError> {
        let path = path.as_ref().to_owned();
        let lock = Lock::take(&path)?;
        let opened = match schema::open(&path, &options) {
            // Even opening a file needs some space. Deletions and compaction must work on a full disk.
            Err(error) if error.is_full() => {
                let reserve = schema::beside(&path, ".reserve");
                std::fs::remove_file(reserve).map_err(|_| error)?;
                schema::open(&path, &options)
            }
            opened => opened,
        };
        let (connection, floor) = opened?;
        let history = History::read(&connection, &path, floor)?;
        let floor = floor.max(history.intact_after);
        let checkpoints = Arc::new(Checkpoints::new(path.clone(), &options));
        let writer = Writer::new(connection, &path, checkpoints.clone(), &options, history.at)?;
        Ok(Self {
            path,
            writer: Mutex::new(Some(writer)),
            checkpoints,
            history: Mutex::new(Some(history.written)),
            floor: AtomicU64::new(floor),
            free_bytes: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            lock: Mutex::new(Some(lock)),
        })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn with_writer<T>(
        &self,
        act: impl FnOnce(&mut Writer) -> Result<T, BackendError>,
    ) -> Result<T, BackendError> {
        act(self.writer.lock().as_mut().ok_or_else(closed)?)
    }

    /// Fails after the file was closed, without waiting for a running commit.
    fn check_open(&self) -> Result<(), BackendError> {
        match self.closed.load(Ordering::Acquire) {
            true => Err(closed()),
            false => Ok(()),
        }
    }

    /// Fails if the rows read after `revision` may have been compacted in the meantime.
    fn check_floor(&self, revision: u64) -> Result<(), BackendError> {
        let floor = self.compacted();
        if revision < floor {
            return Err(BackendError::Compacted { floor });
        }
        Ok(())
    }
}

impl Backend for Sqlite {
    fn append(&self, base: &Mark, batch: &Batch) -> Result<Appended, BackendError> {
        self.with_writer(|writer| writer.append(base, batch).map(Appended::Done))
    }

    fn load(&self, after: u64, visit: &mut dyn FnMut(Record)) -> Result<Mark, BackendError> {
        self.with_writer(|writer| {
            read::load(&writer.connection, after, visit, &Stop::default())?;
            Ok(writer.mark)
        })
    }

    fn dump(
        &self,
        after: u64,
        visit: &mut dyn FnMut(Record),
        stop: &Stop,
    ) -> Result<Mark, BackendError> {
        self.check_open()?;
        read::dump(&self.path, after, visit, stop)
    }

    fn refill(&self, step: Refill<'_>) -> Result<(), BackendError> {
        self.with_writer(|writer| {
            writer.refill(step)?;
            if let Refill::Start(end) = step {
                self.floor.store(end.last, Ordering::Release);
            }
            Ok(())
        })
    }

    fn is_complete(&self) -> Result<bool, BackendError> {
        self.with_writer(|writer| refill::is_complete(&writer.connection))
    }

    fn next_epoch(&self, beyond: u64) -> Result<Mark, BackendError> {
        self.with_writer(|writer| {
            let end = writer.next_epoch(beyond)?;
            self.floor.store(end.last, Ordering::Release);
            Ok(end)
        })
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
            let last = writer.mark.last;
            // The floor is raised before the first row is deleted, so a read that ends later knows that it may have
            // missed rows.
            let floor = self.compacted().max(upto.min(last));
            self.floor.store(floor, Ordering::Release);
            let swept = writer.compact(floor, rows)?;
            self.free_bytes.store(swept.free_bytes, Ordering::Relaxed);
            Ok(swept.sweep)
        })
    }

    fn history(&self, visit: &mut dyn FnMut(Written)) -> Result<(), BackendError> {
        let floor = self.compacted();
        // The times were read when the file was opened, and are kept for the first call.
        let written = match self.history.lock().take() {
            Some(written) => written,
            None => self.with_writer(|writer| {
                History::read(&writer.connection, &self.path, floor)
                    .map(|history| history.written)
                    .map_err(|error| BackendError::Failed(Box::new(error)))
            })?,
        };
        let above = written.into_iter().filter(|part| part.last > floor);
        above.for_each(visit);
        Ok(())
    }

    fn places(&self, visit: &mut dyn FnMut(Mark)) -> Result<(), BackendError> {
        self.with_writer(|writer| {
            mark::each(&writer.connection, self.compacted(), visit).map_err(failed)
        })
    }

    fn revision_before(&self, time: SystemTime) -> Result<u64, BackendError> {
        self.with_writer(|writer| read::before(&writer.connection, time).map_err(failed))
    }

    fn compacted(&self) -> u64 {
        self.floor.load(Ordering::Acquire)
    }

    fn mark(&self) -> Result<Mark, BackendError> {
        self.with_writer(|writer| Ok(writer.mark))
    }

    fn rewrite(&self, change: &mut ChangeValue<'_>) -> Result<Rewritten, BackendError> {
        self.with_writer(|writer| {
            let done = rewrite::in_place(&mut writer.connection, &self.path, change)
                .map_err(|error| BackendError::Failed(Box::new(error)));
            // Digests are computed over the stored values, which may have changed even after an error.
            writer.mark = mark::read(&writer.connection).map_err(failed)?;
            done
        })
    }

    fn release_memory(&self) {
        // Cached pages stay if this fails, which does no harm.
        let _ = self.with_writer(|writer| writer.connection.release_memory().map_err(failed));
    }

    fn stats(&self) -> BackendStats {
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |data| data.len());
        BackendStats {
            bytes: size(&self.path) + size(&schema::beside(&self.path, "-wal")),
            free_bytes: self.free_bytes.load(Ordering::Relaxed),
            available_bytes: available(&self.path),
            engine: "sqlite",
            ..BackendStats::default()
        }
    }

    fn close(&self) -> Result<(), BackendError> {
        self.closed.store(true, Ordering::Release);
        let writer = self.writer.lock().take();
        self.checkpoints.finish();
        let closed = writer.map_or(Ok(()), |writer| {
            // When the last connection closes, SQLite copies the write-ahead log into the file and removes the log.
            writer
                .connection
                .close()
                .map_err(|(_, error)| failed(error))
        });
        drop(self.lock.lock().take());
        closed
    }
}

/// Returns the bytes that the file system of `path` has left for this user; `None` if unknown.
fn available(path: &Path) -> Option<u64> {
    let space = rustix::fs::statvfs(path).ok()?;
    Some(space.f_bavail.saturating_mul(space.f_frsize))
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::warn!(%error, "the file was not closed cleanly");
        }
    }
}

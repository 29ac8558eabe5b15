//! Reserves disk space, so that deletions and compaction still work when the disk is full.
//!
//! The reserve is a file beside the database. It is removed when a deletion or a compaction finds no
//! space, and created again when there is space for it. It is larger than the part of the write-ahead
//! log that is not in the database yet (see `checkpoint`), so that the log can always be emptied.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long to wait before the reserve is created again.
const REFILL_AFTER: Duration = Duration::from_secs(10);

/// A file that is deleted when the disk is full, so that deletions and compaction have room.
pub(crate) struct Reserve {
    path: PathBuf,
    bytes: u64,
    /// The thread that creates the file. Neither the start nor a commit waits for this thread.
    filling: Option<Filling>,
    /// When to try to create the file again; `None` while it exists.
    refill_at: Option<Instant>,
}

struct Filling {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<()>>,
}

impl Reserve {
    /// Creates the reserve unless it exists. If there is no space, the reserve is created later.
    pub(crate) fn open(path: PathBuf, bytes: u64) -> Self {
        let mut reserve = Self {
            path,
            bytes,
            filling: None,
            refill_at: None,
        };
        reserve.fill();
        reserve
    }

    /// Releases the space; returns false if there was no reserve.
    pub(crate) fn release(&mut self) -> bool {
        if self.bytes == 0 {
            return false;
        }
        self.finish(true);
        self.refill_at = Some(Instant::now() + REFILL_AFTER);
        let released = fs::remove_file(&self.path).is_ok();
        if released {
            tracing::warn!("no space left: the reserve is used for deletions and compaction");
        }
        released
    }

    /// Creates the reserve again if the wait is over.
    pub(crate) fn refill(&mut self) {
        let filling = self.filling.as_ref();
        if filling.is_some_and(|filling| filling.thread.is_finished()) {
            self.finish(false);
        }
        if self.refill_at.is_some_and(|at| at <= Instant::now()) {
            self.fill();
        }
    }

    fn fill(&mut self) {
        self.refill_at = None;
        let exists = fs::metadata(&self.path).is_ok_and(|found| found.len() == self.bytes);
        if self.bytes == 0 || exists || self.filling.is_some() {
            return;
        }
        let stop = Arc::new(AtomicBool::new(false));
        let (path, bytes, stopped) = (self.path.clone(), self.bytes, stop.clone());
        let thread = std::thread::Builder::new()
            .name("bareboat-reserve".into())
            .spawn(move || write(&path, bytes, &stopped));
        match thread {
            Ok(thread) => self.filling = Some(Filling { stop, thread }),
            Err(error) => {
                tracing::debug!(%error, "cannot start a thread for the reserve");
                self.refill_at = Some(Instant::now() + REFILL_AFTER);
            }
        }
    }

    /// Waits for the thread. If `stop` is set, the thread ends soon.
    fn finish(&mut self, stop: bool) {
        let Some(Filling { stop: flag, thread }) = self.filling.take() else {
            return;
        };
        flag.store(stop, Ordering::Relaxed);
        // The thread does not panic.
        if let Ok(Err(error)) = thread.join() {
            tracing::debug!(%error, "no space for the reserve");
            // An incomplete reserve would only take space.
            let _ = fs::remove_file(&self.path);
            self.refill_at = Some(Instant::now() + REFILL_AFTER);
        }
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        self.finish(true);
    }
}

fn write(path: &Path, bytes: u64, stop: &AtomicBool) -> io::Result<()> {
    let mut file = File::create(path)?;
    // Random bytes, because some file systems do not store zeros.
    let mut noise = 0x9e37_79b9_7f4a_7c15_u64;
    let block: Vec<u8> = (0..8192)
        .flat_map(|_| {
            noise ^= noise << 13;
            noise ^= noise >> 7;
            noise ^= noise << 17;
            noise.to_le_bytes()
        })
        .collect();
    let mut left = bytes as usize;
    while left > 0 {
        if stop.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let part = left.min(block.len());
        file.write_all(&block[..part])?;
        left -= part;
    }
    // Late errors, such as an exceeded quota, are reported here.
    file.sync_data()
}

/// What prevents writes while reads work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// There is no space, or a quota is exceeded.
    Space,
    /// The disk is read-only.
    ReadOnly,
}

/// Returns what prevents a small write beside the database, if anything does. SQLite itself reports an exceeded quota
/// and a read-only disk only as a failed write.
pub(crate) fn obstacle_at(path: &Path, bytes: usize) -> Option<Obstacle> {
    let probe = || -> io::Result<()> {
        let mut file = File::create(path)?;
        file.write_all(&vec![0x5a; bytes.clamp(4096, 8 << 20)])?;
        file.sync_data()
    };
    let outcome = probe();
    // The file may not exist.
    let _ = fs::remove_file(path);
    match outcome.err()?.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some(Obstacle::Space),
        io::ErrorKind::ReadOnlyFilesystem => Some(Obstacle::ReadOnly),
        _ => None,
    }
}

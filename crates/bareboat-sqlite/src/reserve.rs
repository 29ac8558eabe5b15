//! Reserves disk space, so that deletions and compaction still work when the disk is full.
//!
//! The reserve is a file beside the database. It is removed when a deletion or a compaction finds no
//! space, and created again when there is space for it. It is larger than the part of the write-ahead
//! log that is not in the database yet (see `checkpoint`), so that the log can always be emptied.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long to wait before the reserve is created again.
const REFILL_AFTER: Duration = Duration::from_secs(10);

/// A file that is deleted when the disk is full, so that deletions and
/// compaction have room.
pub(crate) struct Reserve {
    path: PathBuf,
    bytes: u64,
    /// When to try to create it again; `None` while it exists.
    refill_at: Option<Instant>,
}

impl Reserve {
    /// Creates the reserve unless it exists. Without space it is created later.
    pub(crate) fn open(path: PathBuf, bytes: u64) -> Self {
        let mut reserve = Self {
            path,
            bytes,
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
        self.refill_at = Some(Instant::now() + REFILL_AFTER);
        let released = fs::remove_file(&self.path).is_ok();
        if released {
            tracing::warn!("no space left: the reserve is used for deletions and compaction");
        }
        released
    }

    /// Creates the reserve again if it is time.
    pub(crate) fn refill(&mut self) {
        if self.refill_at.is_some_and(|at| at <= Instant::now()) {
            self.fill();
        }
    }

    fn fill(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let filled = match fs::metadata(&self.path) {
            Ok(found) if found.len() == self.bytes => Ok(()),
            _ => self.write(),
        };
        self.refill_at = match filled {
            Ok(()) => None,
            Err(error) => {
                tracing::debug!(%error, "no space for the reserve");
                // An incomplete reserve would only take space.
                let _ = fs::remove_file(&self.path);
                Some(Instant::now() + REFILL_AFTER)
            }
        };
    }

    fn write(&self) -> io::Result<()> {
        let mut file = File::create(&self.path)?;
        // Not zeros, because some file systems do not store them.
        let mut noise = 0x9e37_79b9_7f4a_7c15_u64;
        let block: Vec<u8> = (0..8192)
            .flat_map(|_| {
                noise ^= noise << 13;
                noise ^= noise >> 7;
                noise ^= noise << 17;
                noise.to_le_bytes()
            })
            .collect();
        let mut left = self.bytes as usize;
        while left > 0 {
            let part = left.min(block.len());
            file.write_all(&block[..part])?;
            left -= part;
        }
        // Late errors, such as those of a quota, are reported now.
        file.sync_data()
    }
}

/// Returns whether a small write beside the database fails for lack of space or quota: SQLite
/// reports an exceeded quota only as a failed write.
pub(crate) fn no_space_at(path: &std::path::Path, bytes: usize) -> bool {
    let probe = || -> io::Result<()> {
        let mut file = File::create(path)?;
        file.write_all(&vec![0x5a; bytes.clamp(4096, 8 << 20)])?;
        file.sync_data()
    };
    let outcome = probe();
    // The file may not exist.
    let _ = fs::remove_file(path);
    matches!(
        outcome.map_err(|error| error.kind()),
        Err(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    )
}

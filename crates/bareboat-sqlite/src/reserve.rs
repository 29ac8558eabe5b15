//! Space that is held back, so that deletions and compaction still work when the disk is full.
//!
//! A file of a few megabytes beside the database. It is removed when a deletion or a compaction finds no space, and made
//! again when there is space for it.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long to wait before the reserve is made again.
const REFILL_AFTER: Duration = Duration::from_secs(10);

/// The file that holds the space.
pub(crate) struct Reserve {
    path: PathBuf,
    bytes: u64,
    /// When to try to make it again; `None` while it is there.
    refill_at: Option<Instant>,
}

impl Reserve {
    /// Makes the reserve unless it is there. Without space there is none until later.
    pub(crate) fn open(path: PathBuf, bytes: u64) -> Self {
        let mut reserve = Self {
            path,
            bytes,
            refill_at: None,
        };
        reserve.fill();
        reserve
    }

    /// Gives the space to the file system; false if there was none.
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

    /// Makes the reserve again if it is time.
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
                // Half a reserve would only take space from others.
                let _ = fs::remove_file(&self.path);
                Some(Instant::now() + REFILL_AFTER)
            }
        };
    }

    fn write(&self) -> io::Result<()> {
        let mut file = File::create(&self.path)?;
        // No zeros: some file systems would not store them.
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
        // Errors that come late, such as those of a quota, come now.
        file.sync_data()
    }
}

/// Whether a small write beside the database fails for want of space or quota: SQLite reports a quota only as a write that
/// failed.
pub(crate) fn no_space_at(path: &std::path::Path, bytes: usize) -> bool {
    let probe = || -> io::Result<()> {
        let mut file = File::create(path)?;
        file.write_all(&vec![0x5a; bytes.clamp(4096, 8 << 20)])?;
        file.sync_data()
    };
    let outcome = probe();
    // It may not even have been made.
    let _ = fs::remove_file(path);
    matches!(
        outcome.map_err(|error| error.kind()),
        Err(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    )
}

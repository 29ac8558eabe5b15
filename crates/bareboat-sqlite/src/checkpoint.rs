//! Checkpoints: copy the write-ahead log into the file without delaying commits.
//!
//! SQLite's own checkpoint runs inside a commit and delays that commit by milliseconds. Here a thread with its own
//! connection copies pages during commits. When little remains, the writer copies the rest and the log starts again
//! from its front. After a compaction the thread itself copies the rest and truncates the log, because the next write
//! may come much later.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use rusqlite::Connection;

use crate::SqliteOptions;
use crate::schema::{BUSY_TIMEOUT, beside, open_writer_beside};

/// The fill level of the write-ahead log, and the state of the copying thread.
pub(crate) struct Checkpoints {
    state: Arc<State>,
    start_at: u64,
    limit: u64,
    /// The maximum bytes that are not copied yet. On a full disk the reserve must have room for all of them, because
    /// the log starts again from its front only when everything is copied.
    uncopied: u64,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct State {
    path: PathBuf,
    /// The bytes in the write-ahead log, at the end of which the next commit is appended. The number is an estimate
    /// between checkpoints.
    filled: AtomicU64,
    /// How many of these bytes are already in the file.
    copied: AtomicU64,
    running: AtomicBool,
    /// Whether the log must be truncated when everything is copied.
    settling: AtomicBool,
    /// Whether the thread truncates the log.
    truncating: AtomicBool,
    /// Set when the file is closed, so that a thread that waits for readers ends.
    closing: Mutex<bool>,
    closed: Condvar,
}

/// The result of an attempt to restart the log from its front.
pub(crate) enum Restart {
    /// The log was restarted.
    Done,
    /// A reader or a copy uses the log.
    Hindered,
    /// SQLite returned an error, such as a full disk.
    Failed,
}

/// A page and its frame header.
const FRAME: u64 = 4096 + 24;
/// The pages that a commit writes in addition to its values: a half-filled leaf and its parents.
const PER_COMMIT: u64 = 2 * FRAME;
/// The number of bytes that the writer may copy itself without a noticeable delay.
const LITTLE: u64 = 64 * FRAME;
/// The first pause while the thread waits for readers after a compaction. Each pause is twice as long as the one
/// before; together they last some minutes.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LAST_PAUSE: Duration = Duration::from_secs(120);
/// How long the writer waits for a copy when the log is at a limit. A copy does not wait for readers, so it always
/// ends.
const COPY_PATIENCE: Duration = Duration::from_secs(30);

impl Checkpoints {
    pub(crate) fn new(path: PathBuf, options: &SqliteOptions) -> Self {
        // The rest of the reserve is for deletions.
        let uncopied = match options.reserve_bytes {
            0 => u64::MAX,
            reserve => (reserve - reserve / 4).max(LITTLE),
        };
        Self {
            state: Arc::new(State {
                // The content that a crash left in the log has not been read yet.
                filled: AtomicU64::new(
                    std::fs::metadata(beside(&path, "-wal")).map_or(0, |data| data.len()),
                ),
                path,
                copied: AtomicU64::new(0),
                running: AtomicBool::new(false),
                settling: AtomicBool::new(false),
                truncating: AtomicBool::new(false),
                closing: Mutex::new(false),
                closed: Condvar::new(),
            }),
            start_at: options.checkpoint_bytes.min(uncopied),
            limit: options.checkpoint_limit_bytes,
            uncopied,
            threads: Mutex::default(),
        }
    }

    /// Counts a commit. Called by the writer after each commit, outside of transactions.
    pub(crate) fn written(&self, writer: &Connection, bytes: u64) {
        self.grown(writer, bytes + bytes / 8 + PER_COMMIT);
    }

    /// Counts a slice of compaction that wrote about this many pages. Called by the writer.
    pub(crate) fn compacted(&self, writer: &Connection, pages: u64) {
        self.grown(writer, pages * FRAME);
    }

    fn grown(&self, writer: &Connection, grown: u64) {
        let state = &self.state;
        let filled = state.filled.fetch_add(grown, Ordering::Relaxed) + grown;
        let rest = filled.saturating_sub(state.copied.load(Ordering::Relaxed));
        if filled < self.start_at || state.running.load(Ordering::Acquire) {
            if filled >= self.limit {
                self.wait_for_copy();
                self.restart(writer);
            } else if rest >= self.uncopied {
                self.wait_for_copy();
            }
            return;
        }
        if rest <= LITTLE || filled >= self.limit {
            self.restart(writer);
        } else {
            self.copy_beside();
        }
    }

    /// Waits for a running copy for a limited time, so that the log does not grow far beyond its limit. Does not wait
    /// for a thread that truncates the log, because that thread waits for readers.
    fn wait_for_copy(&self) {
        let deadline = Instant::now() + COPY_PATIENCE;
        let state = &self.state;
        while state.running.load(Ordering::Acquire)
            && !state.truncating.load(Ordering::Acquire)
            && Instant::now() < deadline
        {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Copies the remaining pages and restarts the log from its front. Called by the writer.
    pub(crate) fn restart(&self, writer: &Connection) -> Restart {
        // Do not wait for readers: a long read must not delay a commit.
        let patience = |time| writer.busy_timeout(time);
        let restarted = patience(Duration::ZERO).and_then(|()| checkpoint(writer, "RESTART"));
        match restarted.and_then(|done| patience(BUSY_TIMEOUT).map(|()| done)) {
            Ok((false, _)) => {
                self.state.note(Some((0, 0)));
                Restart::Done
            }
            // A reader or the copying thread still uses the log. The log grows until a later commit finds it unused.
            Ok((true, fill)) => {
                self.state.note(fill);
                Restart::Hindered
            }
            Err(error) => {
                tracing::debug!(%error, "a checkpoint failed");
                Restart::Failed
            }
        }
    }

    /// Copies everything and truncates the log after a compaction, even if no write follows.
    pub(crate) fn settle(&self) {
        if self.state.filled.load(Ordering::Relaxed) <= LITTLE {
            return;
        }
        self.state.settling.store(true, Ordering::Release);
        self.copy_beside();
    }

    /// Starts the copying thread unless it runs.
    fn copy_beside(&self) {
        if self.state.running.swap(true, Ordering::AcqRel) {
            return;
        }
        let state = self.state.clone();
        let thread = std::thread::Builder::new().name("bareboat-copy".into());
        match thread.spawn(move || state.run()) {
            Ok(handle) => {
                let mut threads = self.threads.lock();
                threads.retain(|thread| !thread.is_finished());
                threads.push(handle);
            }
            Err(error) => {
                self.state.running.store(false, Ordering::Release);
                tracing::warn!(%error, "cannot start a thread for a checkpoint");
            }
        }
    }

    /// Waits for a running copy.
    pub(crate) fn finish(&self) {
        *self.state.closing.lock() = true;
        self.state.closed.notify_all();
        for thread in std::mem::take(&mut *self.threads.lock()) {
            // The thread reports its own failures.
            let _ = thread.join();
        }
    }
}

impl State {
    /// Replaces the estimates, if SQLite has told the bytes in the log and the copied ones.
    fn note(&self, fill: Option<(u64, u64)>) {
        if let Some((filled, copied)) = fill {
            self.filled.store(filled, Ordering::Relaxed);
            self.copied.store(copied, Ordering::Relaxed);
        }
    }

    /// Runs the thread: copies once, and truncates the log if `settle` was called before the thread ends.
    fn run(&self) {
        loop {
            match self.settling.swap(false, Ordering::AcqRel) {
                true => {
                    self.truncating.store(true, Ordering::Release);
                    self.settle_in_time();
                    self.truncating.store(false, Ordering::Release);
                }
                false => self.copy(),
            }
            self.running.store(false, Ordering::Release);
            if !self.settling.load(Ordering::Acquire) || self.running.swap(true, Ordering::AcqRel) {
                return;
            }
        }
    }

    fn copy(&self) {
        let copied = open_writer_beside(&self.path)
            .and_then(|connection| checkpoint(&connection, "PASSIVE"));
        match copied {
            Ok((_, fill)) => self.note(fill),
            Err(error) => tracing::warn!(%error, "a checkpoint failed"),
        }
    }

    /// Truncates the log, and waits for readers if necessary.
    fn settle_in_time(&self) {
        let mut pause = FIRST_PAUSE;
        while pause <= LAST_PAUSE && !self.settle() && !self.wait(pause) {
            pause *= 2;
        }
    }

    /// Copies everything and truncates the log. Returns whether the work is done or must not be retried.
    fn settle(&self) -> bool {
        let settled = open_writer_beside(&self.path).and_then(|connection| {
            // Copy most pages while the writer works; the writer waits only while the last pages are copied.
            let (_, fill) = checkpoint(&connection, "PASSIVE")?;
            match fill {
                Some((filled, copied)) if filled.saturating_sub(copied) <= LITTLE => {
                    checkpoint(&connection, "TRUNCATE")
                }
                _ => Ok((true, fill)),
            }
        });
        match settled {
            Ok((hindered, fill)) => {
                self.note(fill);
                !hindered
            }
            Err(error) => {
                tracing::warn!(%error, "a checkpoint failed");
                true
            }
        }
    }

    /// Waits for `pause`; returns true if the file is being closed.
    fn wait(&self, pause: Duration) -> bool {
        let mut closing = self.closing.lock();
        if !*closing {
            let _ = self.closed.wait_for(&mut closing, pause);
        }
        *closing
    }
}

/// Runs a checkpoint. Returns whether it was blocked, and the bytes in the log and the copied ones. SQLite does not tell them if the
/// checkpoint could not begin, because another one ran.
fn checkpoint(connection: &Connection, mode: &str) -> rusqlite::Result<(bool, Option<(u64, u64)>)> {
    connection.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| {
        let bytes = |frames: i64| u64::try_from(frames).ok().map(|frames| frames * FRAME);
        let (filled, copied) = (bytes(row.get(1)?), bytes(row.get(2)?));
        Ok((row.get(0)?, filled.zip(copied)))
    })
}

//! Moving the write-ahead log into the file without holding up commits.
//!
//! SQLite's own checkpoint runs inside some commit and costs it milliseconds. Here a thread with a connection of its own
//! copies pages while commits go on; when little remains the writer finishes and the log starts again from its front.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::Connection;

use crate::SqliteOptions;
use crate::schema::{BUSY_TIMEOUT, open_writer_beside};

/// How full the write-ahead log is, and who is emptying it.
pub(crate) struct Checkpoints {
    state: Arc<State>,
    start_at: u64,
    limit: u64,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct State {
    path: PathBuf,
    /// Bytes in the write-ahead log that a new commit would be appended to; estimated between checkpoints.
    filled: AtomicU64,
    /// Bytes of it that are in the file already.
    copied: AtomicU64,
    running: AtomicBool,
}

/// A page and its frame header.
const FRAME: u64 = 4096 + 24;
/// Pages a commit writes beside its values: a half-filled leaf, its parents.
const PER_COMMIT: u64 = 2 * FRAME;
/// What the writer may copy itself without anyone noticing.
const LITTLE: u64 = 64 * FRAME;

impl Checkpoints {
    pub(crate) fn new(path: PathBuf, options: &SqliteOptions) -> Self {
        Self {
            state: Arc::new(State {
                path,
                filled: AtomicU64::new(0),
                copied: AtomicU64::new(0),
                running: AtomicBool::new(false),
            }),
            start_at: options.checkpoint_bytes,
            limit: options.checkpoint_limit_bytes,
            thread: Mutex::new(None),
        }
    }

    /// Called by the writer after each commit, outside any transaction.
    pub(crate) fn written(&self, writer: &Connection, bytes: u64) {
        let state = &self.state;
        let grown = bytes + bytes / 8 + PER_COMMIT;
        let filled = state.filled.fetch_add(grown, Ordering::Relaxed) + grown;
        if filled < self.start_at || state.running.load(Ordering::Acquire) {
            if filled >= self.limit {
                self.restart(writer);
            }
            return;
        }
        let rest = filled.saturating_sub(state.copied.load(Ordering::Relaxed));
        if rest <= LITTLE || filled >= self.limit {
            self.restart(writer);
        } else {
            self.copy_beside();
        }
    }

    /// The writer's own part: what remains is copied, and the log begins at its front again.
    fn restart(&self, writer: &Connection) {
        // Not waiting for readers: a long read must not become a long commit.
        let patience = |time| writer.busy_timeout(time);
        let restarted = patience(Duration::ZERO).and_then(|()| checkpoint(writer, "RESTART"));
        match restarted.and_then(|done| patience(BUSY_TIMEOUT).map(|()| done)) {
            Ok((false, _, _)) => self.state.note(0, 0),
            // A reader or the copying thread is still in the log: it grows until a later commit finds it free.
            Ok((true, filled, copied)) => self.state.note(filled, copied),
            Err(error) => tracing::warn!(%error, "a checkpoint failed"),
        }
    }

    fn copy_beside(&self) {
        let state = self.state.clone();
        state.running.store(true, Ordering::Release);
        let thread = std::thread::Builder::new().name("bareboat-copy".into());
        let started = thread.spawn(move || {
            let copied = open_writer_beside(&state.path)
                .and_then(|connection| checkpoint(&connection, "PASSIVE"));
            match copied {
                Ok((_, filled, copied)) => state.note(filled, copied),
                Err(error) => tracing::warn!(%error, "a checkpoint failed"),
            }
            state.running.store(false, Ordering::Release);
        });
        match started {
            // The one before has ended, or this would not have been started.
            Ok(handle) => *self.thread.lock() = Some(handle),
            Err(error) => {
                self.state.running.store(false, Ordering::Release);
                tracing::warn!(%error, "no thread for a checkpoint");
            }
        }
    }

    /// Waits for a copy that is under way.
    pub(crate) fn finish(&self) {
        if let Some(thread) = self.thread.lock().take() {
            // It reports its own failures.
            let _ = thread.join();
        }
    }
}

impl State {
    fn note(&self, filled: u64, copied: u64) {
        self.filled.store(filled, Ordering::Relaxed);
        self.copied.store(copied, Ordering::Relaxed);
    }
}

/// Whether it was hindered, and the bytes filled and copied.
fn checkpoint(connection: &Connection, mode: &str) -> rusqlite::Result<(bool, u64, u64)> {
    connection.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| {
        let frames = |frames: i64| frames.max(0) as u64 * FRAME;
        Ok((row.get(0)?, frames(row.get(1)?), frames(row.get(2)?)))
    })
}

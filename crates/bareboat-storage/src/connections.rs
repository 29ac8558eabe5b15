//! Connections of an engine to its database, counted for metrics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The connections of an engine since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// Connections that were made.
    pub opened: u64,
    /// Connections that were lost, or given up because they led to a server that was replaced. Counted when the next one is
    /// needed.
    pub lost: u64,
    /// Tries to connect that failed.
    pub failed: u64,
}

/// Counts connections.
#[derive(Debug, Default)]
pub struct ConnectionCounter {
    opened: AtomicU64,
    lost: AtomicU64,
    failed: AtomicU64,
}

impl ConnectionCounter {
    /// Counts a try to connect.
    pub fn tried<T, E>(&self, connected: &Result<T, E>) {
        match connected {
            Ok(_) => self.opened.fetch_add(1, Relaxed),
            Err(_) => self.failed.fetch_add(1, Relaxed),
        };
    }

    /// Counts a connection that was lost.
    pub fn lost(&self) {
        self.lost.fetch_add(1, Relaxed);
    }

    /// Reads the counters.
    pub fn read(&self) -> Connections {
        Connections {
            opened: self.opened.load(Relaxed),
            lost: self.lost.load(Relaxed),
            failed: self.failed.load(Relaxed),
        }
    }
}

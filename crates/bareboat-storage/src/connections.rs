//! Counts the connections of an engine to its database, for metrics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters of the connections of an engine since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// Connections that were opened.
    pub opened: u64,
    /// Connections that were lost, or dropped because they led to a server that was replaced. A connection is counted
    /// when the next one is needed.
    pub lost: u64,
    /// Attempts to connect that failed.
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
    /// Counts an attempt to connect.
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

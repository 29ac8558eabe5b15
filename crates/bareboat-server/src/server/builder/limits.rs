//! Builder methods for limits: requests at once, connections, and time.

use super::ServerBuilder;
use std::time::Duration;

impl ServerBuilder {
    /// Sets how many reads and how many writes may run at once; priority levels share the sum.
    #[must_use]
    pub fn max_in_flight(mut self, reads: usize, writes: usize) -> Self {
        self.inflight = (reads, writes);
        self
    }

    /// Sets how many connections may be open; always less than the process may open files.
    #[must_use]
    pub fn max_connections(mut self, total: usize) -> Self {
        self.connections.total = Some(total);
        self
    }

    /// Sets how many connections without an authenticated request may be open.
    #[must_use]
    pub fn max_unauthenticated_connections(mut self, total: usize) -> Self {
        self.connections.unauthenticated = Some(total);
        self
    }

    /// Sets how many of those one address may have.
    #[must_use]
    pub fn max_unauthenticated_connections_per_address(mut self, each: usize) -> Self {
        self.connections.per_address = each.max(1);
        self
    }

    /// Sets how long a client may read nothing before it is disconnected.
    #[must_use]
    pub fn stalled_client_timeout(mut self, limit: Duration) -> Self {
        self.connections.stalled = limit;
        self
    }

    /// Sets how long a connection may be open without a request: before and after authentication.
    #[must_use]
    pub fn idle_connection_timeout(mut self, unauthenticated: Duration, known: Duration) -> Self {
        self.connections.silent = unauthenticated;
        self.connections.idle = known;
        self
    }

    /// Sets the time limit of an ordinary request.
    #[must_use]
    pub fn request_timeout(mut self, limit: Duration) -> Self {
        self.limits.request = limit;
        self.limits.write = self.limits.write.min(limit);
        self
    }

    /// Sets how long a server that stops waits for open connections without requests; the default is one second. Their clients may have
    /// sent a request before they learn that their connection ends.
    #[must_use]
    pub fn goodbye(mut self, limit: Duration) -> Self {
        self.limits.goodbye = limit;
        self
    }
}

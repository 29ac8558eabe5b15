//! Checks all connections periodically, and closes those whose clients are gone, idle or not reading.

use super::{Close, Connections, Line};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Maximum interval between checks.
const ROUND: Duration = Duration::from_secs(5);

impl Connections {
    /// Checks the connections until `end`; only the first caller does.
    pub(crate) async fn look_after(self: Arc<Self>, end: impl Future<Output = ()>) {
        if self.watched.swap(true, Ordering::Relaxed) {
            return;
        }
        tokio::select! {
            () = self.rounds() => {}
            () = end => {}
        }
    }

    async fn rounds(&self) {
        let shortest = self.limits.stalled.min(self.limits.silent);
        let round = ROUND.min(shortest / 4).max(Duration::from_millis(10));
        loop {
            if self.is_empty() {
                self.arrived.notified().await;
            }
            tokio::time::sleep(round).await;
            for (line, how) in self.verdicts() {
                tracing::debug!(address = %line.address, ?how, "closing a connection");
                line.close(how);
            }
        }
    }

    fn is_empty(&self) -> bool {
        let table = self.table.lock();
        table.unknown.is_empty() && table.known.is_empty()
    }

    fn verdicts(&self) -> Vec<(Arc<Line>, Close)> {
        let now = self.now();
        let table = self.table.lock();
        let lines = table.unknown.values().chain(table.known.values());
        lines
            .filter_map(|line| Some((line.clone(), line.verdict(now)?)))
            .collect()
    }
}

//! A store among other stores: the thread that follows the log, and the freshness barrier of reads.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::{Shared, Store};
use crate::backend::BackendError;
use crate::sequencer::Command;

/// The interval at which the log is read even if the engine reports no other writers.
const POLL: Duration = Duration::from_secs(1);
/// The pause after the log could not be read.
const PAUSE: Duration = Duration::from_millis(200);

impl Store {
    /// Returns whether other stores may write to the same log.
    pub fn is_shared(&self) -> bool {
        self.shared.core.shared
    }

    /// Returns whether both are handles of one store.
    pub fn is_same(&self, other: &Store) -> bool {
        std::sync::Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Ensures that reads from memory see every commit that any store acknowledged before this call. Returns false
    /// after `timeout`.
    ///
    /// Returns at once if no other store writes to the log. Otherwise the end of the log is read, once for all callers
    /// that wait at that time.
    pub async fn freshen(&self, timeout: Duration) -> Result<bool, BackendError> {
        if !self.shared.core.shared {
            return Ok(true);
        }
        match tokio::time::timeout(timeout, self.catch_up(timeout)).await {
            Ok(fresh) => fresh,
            Err(_) => Ok(false),
        }
    }

    async fn catch_up(&self, timeout: Duration) -> Result<bool, BackendError> {
        let core = &self.shared.core;
        let Some(proof) = self.shared.barrier.end().await else {
            return Ok(false);
        };
        let (end, begun) = proof.map_err(|why| BackendError::Unreachable(why.as_ref().into()))?;
        if core.visible() < end.last {
            // One command is enough for all reads that wait before the command begins.
            self.shared.wanted.fetch_max(end.last, Ordering::SeqCst);
            let asked = self.shared.asked.swap(true, Ordering::SeqCst);
            if !asked && self.shared.queue.push_now(Command::CatchUp(None)).is_err() {
                return Ok(false);
            }
            if !core.wait_for(end.last, timeout).await {
                return Ok(false);
            }
        }
        core.proven_fresh(begun);
        Ok(true)
    }
}

/// Follows the log until the store is closed.
pub(super) fn follow(shared: Arc<Shared>) {
    let core = &shared.core;
    // An engine tells the same news once. After a read that failed, the log is read again without waiting for more.
    let mut failed = false;
    while !core.is_closed() {
        core.tell_attention();
        if !failed {
            let left = POLL.saturating_sub(core.unproven_for());
            let pause = if left.is_zero() { POLL } else { left };
            let news = core.backend.wait(core.visible(), Instant::now() + pause);
            // An append or a read of the end may have shown in the meantime that nothing is missing.
            if !news && core.unproven_for() < POLL {
                continue;
            }
        }
        let (to, done) = mpsc::sync_channel(1);
        if shared.queue.push_now(Command::CatchUp(Some(to))).is_err() {
            return;
        }
        // If there is no answer, the sequencer has ended.
        match done.recv() {
            Ok(read) => failed = !read,
            Err(_) => return,
        }
        if failed {
            std::thread::sleep(PAUSE);
        }
    }
}

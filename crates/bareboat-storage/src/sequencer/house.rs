//! Compaction between batches: the floor is raised when history expires, and old rows are deleted
//! in small slices.

use std::time::{Duration, Instant};

use super::{Sequencer, describe};
use crate::backend::{BackendError, Sweep};

/// How long compaction waits for space before it retries.
const NO_SPACE: Duration = Duration::from_secs(10);
/// How long compaction waits for a backup before it retries.
const HELD: Duration = Duration::from_secs(10);

impl Sequencer {
    /// Does the work that is due, at most one slice.
    pub(super) fn keep_house(&mut self) {
        let now = Instant::now();
        let floor = self.shared.core.floor();
        if let Some(target) = self.retention.due(now, self.mark.last, floor) {
            self.raise_floor(target);
        }
        self.drop_expired_pins(now);
        if self.sweep_again.is_some_and(|at| at <= now) {
            self.sweeping = true;
        }
        if self.sweeping {
            self.sweep();
        }
    }

    /// Raises the floor of the log and of memory to `target`.
    pub(super) fn raise_floor(&mut self, target: u64) {
        self.sweeping = true;
        self.trim(target);
    }

    /// Raises the floor of memory to `target`.
    pub(super) fn trim(&mut self, target: u64) {
        let core = &self.shared.core;
        core.raise_floor(target);
        let floor = core.floor();
        let gone = self.shared.recent.lock().trim(floor);
        if !gone.is_empty() {
            core.cold.discard(gone);
        }
        for resource in self.shared.resources() {
            resource.hub.lock().ring.trim(floor, 0);
        }
        self.shared.drop_unused_resources();
    }

    fn drop_expired_pins(&self, now: Instant) {
        let core = &self.shared.core;
        let mut gone = Vec::new();
        core.pins.lock().drop_expired(now, &mut gone);
        if !gone.is_empty() {
            core.cold.discard(gone);
        }
    }

    /// Runs one slice of compaction. Writes that arrived in the meantime come next.
    fn sweep(&mut self) {
        let core = &self.shared.core;
        self.sweep_again = None;
        let swept = match core.poisoned() {
            Some(_) => Ok(Sweep::Done),
            None => (core.backend).compact(core.floor(), core.options.compact_rows.max(1)),
        };
        match swept {
            Ok(Sweep::More) => return,
            Ok(Sweep::Done) => {}
            Ok(Sweep::Held) => self.sweep_again = Some(Instant::now() + HELD),
            Err(
                error @ (BackendError::Full(_)
                | BackendError::ReadOnly(_)
                | BackendError::Busy(_)
                | BackendError::Unreachable(_)),
            ) => {
                tracing::warn!(error = %describe(&error), "compaction waits");
                self.sweep_again = Some(Instant::now() + NO_SPACE);
            }
            Err(error) => core.poison(describe(&error)),
        }
        self.sweeping = false;
        for done in self.compacting.drain(..) {
            // The caller may have stopped waiting.
            let _ = done.send(());
        }
    }
}

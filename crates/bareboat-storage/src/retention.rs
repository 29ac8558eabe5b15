//! When history is forgotten: by age and by count, and not at all while nothing is written.
//!
//! Pure bookkeeping over instants handed in; the sequencer does what it says.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Which revisions were there when.
pub(crate) struct Retention {
    retain_for: Duration,
    retain_revisions: u64,
    spacing: Duration,
    marks: VecDeque<(Instant, u64)>,
}

impl Retention {
    pub(crate) fn new(retain_for: Duration, retain_revisions: u64, spacing: Duration) -> Self {
        Self {
            retain_for,
            retain_revisions,
            spacing,
            marks: VecDeque::new(),
        }
    }

    /// Notes that `last` had been written at `now`.
    pub(crate) fn note(&mut self, now: Instant, last: u64) {
        let spaced = |mark: &(Instant, u64)| now.duration_since(mark.0) >= self.spacing;
        if self.marks.back().is_none_or(spaced) {
            self.marks.push_back((now, last));
        }
    }

    /// When the next mark comes of age; never, if everything written has been dealt with.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.marks.front().map(|mark| mark.0 + self.retain_for)
    }

    /// The floor that is due at `now`, if it is above `floor`.
    pub(crate) fn due(&mut self, now: Instant, last: u64, floor: u64) -> Option<u64> {
        let mut target = floor;
        while let Some(&(at, revision)) = self.marks.front()
            && at + self.retain_for <= now
        {
            target = target.max(revision);
            self.marks.pop_front();
            if self.marks.is_empty() && revision < last {
                // What was written since that mark, within its spacing, comes of age one round later.
                self.marks.push_back((now, last));
            }
        }
        // An eighth of slack, so that a busy store does not compact with every batch.
        let slack = self.retain_revisions / 8;
        if last - floor > self.retain_revisions.saturating_add(slack) {
            target = target.max(last - self.retain_revisions);
        }
        (target > floor).then_some(target)
    }
}

#[cfg(test)]
mod tests;

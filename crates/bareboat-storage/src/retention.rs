//! When history is forgotten: by age, by count and by bytes, and not at all while nothing is written.
//!
//! Pure bookkeeping over instants handed in; the sequencer does what it says.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::options::StoreOptions;

/// Which revisions were there when.
pub(crate) struct Retention {
    retain_for: Duration,
    retain_revisions: u64,
    retain_bytes: u64,
    spacing: Duration,
    /// Bytes written since the beginning.
    written: u64,
    marks: VecDeque<Mark>,
}

/// A moment in history.
struct Mark {
    at: Instant,
    revision: u64,
    /// Bytes written up to the revision.
    written: u64,
}

/// How finely the limit of bytes is kept.
const BYTE_STEPS: u64 = 64;

impl Retention {
    pub(crate) fn new(options: &StoreOptions) -> Self {
        Self {
            retain_for: options.retain_for,
            retain_revisions: options.retain_revisions,
            retain_bytes: options.retain_bytes,
            spacing: options.compact_every.min(options.retain_for),
            written: 0,
            marks: VecDeque::new(),
        }
    }

    /// Notes that `last` had been written at `now`, and how many bytes came with it.
    pub(crate) fn note(&mut self, now: Instant, last: u64, bytes: u64) {
        self.written += bytes;
        let step = (self.retain_bytes / BYTE_STEPS).max(1);
        let spaced = |mark: &Mark| {
            now.saturating_duration_since(mark.at) >= self.spacing
                || self.written - mark.written >= step
        };
        if self.marks.back().is_none_or(spaced) {
            self.mark(now, last);
        }
    }

    /// Notes that nothing was written after `last`, so that it comes of age by itself.
    pub(crate) fn end(&mut self, at: Instant, last: u64) {
        if self.marks.back().is_none_or(|mark| mark.revision < last) {
            self.mark(at, last);
        }
    }

    fn mark(&mut self, at: Instant, revision: u64) {
        self.marks.push_back(Mark {
            at,
            revision,
            written: self.written,
        });
    }

    /// When the next mark comes of age; never, if everything written has been dealt with.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.marks.front().map(|mark| mark.at + self.retain_for)
    }

    /// The floor that is due at `now`, if it is above `floor`.
    pub(crate) fn due(&mut self, now: Instant, last: u64, floor: u64) -> Option<u64> {
        let mut target = floor;
        while let Some(mark) = self.marks.front()
            && (mark.at + self.retain_for <= now || self.written - mark.written > self.retain_bytes)
        {
            let revision = mark.revision;
            target = target.max(revision);
            self.marks.pop_front();
            if self.marks.is_empty() && revision < last {
                // What was written since that mark, within its spacing, comes of age one round later.
                self.mark(now, last);
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

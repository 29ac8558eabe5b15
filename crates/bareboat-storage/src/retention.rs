//! Decides when history is compacted: by age, by count and by bytes. Nothing is compacted while nothing is written.
//!
//! This module only does the bookkeeping, with times that the sequencer passes. The sequencer compacts.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::options::StoreOptions;

/// The revisions and bytes at past moments.
pub(crate) struct Retention {
    retain_for: Duration,
    retain_revisions: u64,
    retain_bytes: u64,
    spacing: Duration,
    /// The bytes written since the start.
    written: u64,
    marks: VecDeque<Mark>,
}

/// The state of the history at a past time.
struct Mark {
    at: Instant,
    revision: u64,
    /// The bytes written up to the revision.
    written: u64,
}

/// The granularity of the byte limit.
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

    /// Records that revisions up to `last` were written at `now`, with this many bytes.
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

    /// Records that nothing was written after `last`, so that `last` expires.
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

    /// Returns when the oldest change above `floor` was written, as exactly as the marks allow.
    pub(crate) fn oldest(&self, floor: u64) -> Option<Instant> {
        let gone = self.marks.partition_point(|mark| mark.revision <= floor);
        self.marks.get(gone).map(|mark| mark.at)
    }

    /// Returns the time at which the next mark expires; `None` if all history is compacted.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.marks.front().map(|mark| mark.at + self.retain_for)
    }

    /// Returns the floor that is due at `now`, if it is above `floor`.
    pub(crate) fn due(&mut self, now: Instant, last: u64, floor: u64) -> Option<u64> {
        let mut target = floor;
        while let Some(mark) = self.marks.front()
            && (mark.at + self.retain_for <= now || self.written - mark.written > self.retain_bytes)
        {
            let revision = mark.revision;
            target = target.max(revision);
            self.marks.pop_front();
            if self.marks.is_empty() && revision < last {
                // Revisions written shortly after the last mark expire one round later.
                self.mark(now, last);
            }
        }
        // One eighth more is allowed, so that a busy store does not compact with every batch.
        let slack = self.retain_revisions / 8;
        if last - floor > self.retain_revisions.saturating_add(slack) {
            target = target.max(last - self.retain_revisions);
        }
        (target > floor).then_some(target)
    }
}

#[cfg(test)]
mod tests;

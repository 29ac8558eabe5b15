//! The recent events of one resource, addressed by a running number.
//!
//! The ring is a cache of the log; `recent` decides for all resources together how far back each ring reaches.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::event::Event;

/// The recent events of a resource, oldest first.
pub(crate) struct Ring {
    events: VecDeque<Arc<Event>>,
    first: u64,
    since: u64,
    bytes: usize,
}

impl Ring {
    /// Returns an empty ring that contains all events after `since`.
    pub(crate) fn new(since: u64) -> Self {
        Self {
            events: VecDeque::new(),
            first: 0,
            since,
            bytes: 0,
        }
    }

    /// Drops all events. From now on the ring contains all events after `since`.
    pub(crate) fn restart(&mut self, since: u64) {
        self.first = self.end();
        self.since = since;
        self.bytes = 0;
        self.events = VecDeque::new();
    }

    /// Returns the revision after which the ring contains all events of the resource.
    pub(crate) fn since(&self) -> u64 {
        self.since
    }

    pub(crate) fn push(&mut self, event: Arc<Event>) -> u64 {
        self.bytes += event.weight();
        self.events.push_back(event);
        self.end() - 1
    }

    /// Returns the number of the oldest event.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// Returns the number of the next event.
    pub(crate) fn end(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of the first event after `revision`.
    pub(crate) fn position_after(&self, revision: u64) -> u64 {
        let at = self.events.partition_point(|event| event.rev <= revision);
        self.first + at as u64
    }

    /// Returns the events from number `from` on.
    pub(crate) fn from(&self, from: u64) -> impl DoubleEndedIterator<Item = &Arc<Event>> {
        let skip = (from.saturating_sub(self.first) as usize).min(self.events.len());
        self.events.range(skip..)
    }

    /// Returns the events with numbers from `from` up to but not including `to`. The ring must contain them.
    pub(crate) fn between(
        &self,
        from: u64,
        to: u64,
    ) -> impl DoubleEndedIterator<Item = &Arc<Event>> {
        let at = |number: u64| (number.saturating_sub(self.first) as usize).min(self.events.len());
        self.events.range(at(from)..at(to))
    }

    /// Drops events up to `revision` while more than `keep` bytes remain.
    pub(crate) fn trim(&mut self, revision: u64, keep: usize) {
        while self.bytes > keep
            && let Some(oldest) = self.events.front()
            && oldest.rev <= revision
        {
            self.bytes -= oldest.weight();
            self.since = oldest.rev;
            self.first += 1;
            self.events.pop_front();
        }
        if self.events.is_empty() {
            self.events.shrink_to_fit();
        }
    }
}

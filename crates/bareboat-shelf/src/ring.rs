//! The recent changes in memory, for watches that follow.
//!
//! Changes are kept only while there are watches, up to a limit of bytes. A watch that is further behind reads rows.

use crate::query::spliced;
use crate::row::Narrow;
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::Arc;

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// It is new.
    Added,
    /// It changed.
    Modified,
    /// It is gone.
    Deleted,
}

/// The object before a change.
#[derive(Clone, Debug)]
pub(crate) struct Before {
    pub(crate) narrow: Narrow,
    pub(crate) body: Bytes,
}

/// A change of one object.
#[derive(Clone, Debug)]
pub struct Event {
    /// What happened.
    pub event: EventType,
    /// The row after the change; its `rev` is the change's.
    pub narrow: Narrow,
    /// The body; empty if only the row is known, which is so for deletions that were not seen live.
    pub body: Bytes,
    pub(crate) splice: usize,
    pub(crate) before: Option<Before>,
    /// Whether this stands for all changes since some version, so that the state before is not known.
    pub(crate) merged: bool,
}

impl Event {
    /// Returns the body with a resourceVersion.
    pub fn with_version(&self, version: &str) -> Bytes {
        spliced(&self.body, self.splice, version)
    }

    /// Returns whether this stands for all changes since some version.
    pub fn is_merged(&self) -> bool {
        self.merged
    }

    /// Returns the object of the change.
    pub fn item(&self) -> crate::Item {
        crate::Item {
            narrow: self.narrow.clone(),
            body: self.body.clone(),
            splice: self.splice,
        }
    }

    fn weight(&self) -> usize {
        let row = |narrow: &Narrow| 320 + narrow.labels.len() + narrow.fields.len();
        let before = self.before.as_ref();
        row(&self.narrow)
            + self.body.len()
            + before.map_or(0, |one| row(&one.narrow) + one.body.len())
    }
}

/// The recent changes.
#[derive(Debug)]
pub(crate) struct Ring {
    events: VecDeque<Arc<Event>>,
    bytes: usize,
    most: usize,
    /// All changes after this version are in the ring.
    from: i64,
    watches: usize,
}

impl Ring {
    pub(crate) fn new(most: usize, from: i64) -> Ring {
        Ring {
            events: VecDeque::new(),
            bytes: 0,
            most,
            from,
            watches: 0,
        }
    }

    /// Counts a watch.
    pub(crate) fn enter(&mut self) {
        self.watches += 1;
    }

    /// A watch ended.
    pub(crate) fn leave(&mut self) {
        self.watches = self.watches.saturating_sub(1);
        if self.watches == 0 {
            self.from = self.events.back().map_or(self.from, |last| last.narrow.rev);
            self.events = VecDeque::new();
            self.bytes = 0;
        }
    }

    /// Whether changes are kept.
    pub(crate) fn is_watched(&self) -> bool {
        self.watches > 0
    }

    /// Adds the changes of a commit, up to a version. If they were not recorded, the ring begins anew.
    pub(crate) fn extend(&mut self, events: Option<Vec<Event>>, up_to: i64) {
        let Some(events) = events else {
            self.events.clear();
            self.bytes = 0;
            self.from = up_to;
            return;
        };
        for event in events {
            self.bytes += event.weight();
            self.events.push_back(Arc::new(event));
        }
        while self.bytes > self.most {
            let Some(oldest) = self.events.pop_front() else {
                break;
            };
            self.bytes -= oldest.weight();
            self.from = oldest.narrow.rev;
        }
    }

    /// Returns the changes of some kinds after a version, at most so many, and the version they lead to. `None` if the ring
    /// does not reach back that far.
    pub(crate) fn after(
        &self,
        kinds: &[crate::KindId],
        rev: i64,
        most: usize,
        visible: i64,
    ) -> Option<(Vec<Arc<Event>>, i64)> {
        if rev < self.from {
            return None;
        }
        let start = self.events.partition_point(|event| event.narrow.rev <= rev);
        let mut found = Vec::new();
        for event in self.events.range(start..) {
            if found.len() == most {
                let reached = found
                    .last()
                    .map_or(rev, |last: &Arc<Event>| last.narrow.rev);
                return Some((found, reached));
            }
            if kinds.iter().any(|kind| kind.0 == event.narrow.kind) {
                found.push(event.clone());
            }
        }
        // A client that read rows may be ahead of the ring.
        Some((found, visible.max(rev)))
    }
}

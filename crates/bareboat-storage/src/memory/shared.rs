//! The log in memory with several writers: rows of batches, conditions of appends, epochs.

use std::collections::BTreeMap;

use super::State;
use crate::batch::{Appended, Batch, Mark, Tail};

/// The batches of the log by their last revision.
pub(super) type Batches = BTreeMap<u64, Row>;

/// A batch without its records.
pub(super) struct Row {
    first: u64,
    id: u128,
    end: Mark,
}

/// How much the revision increases when an epoch begins.
const JUMP: u64 = 1 << 20;
/// The maximum number of batches that are returned at once.
const TAIL: usize = 256;

impl State {
    pub(super) fn mark(&self) -> Mark {
        let last = self.batches.as_ref().and_then(|all| all.last_key_value());
        match last {
            Some((_, row)) if row.end.last == self.last => row.end,
            // There is only one writer, or nothing was written since the log or its epoch began.
            _ => Mark {
                last: self.last,
                epoch: self.epoch,
                ..Mark::default()
            },
        }
    }

    /// Returns the answer to an append that adds nothing; `None` if the batch must be added.
    pub(super) fn refuse(&self, base: &Mark, batch: &Batch) -> Option<Appended> {
        let end = self.mark();
        if end == *base {
            return None;
        }
        let batches = self.batches.as_ref();
        let own = batches.and_then(|all| all.range(base.last + 1..).next());
        match own {
            Some((_, row)) if row.first == base.last + 1 && row.id == batch.id => {
                Some(Appended::Done(row.end))
            }
            _ => Some(Appended::Moved(self.tail(base))),
        }
    }

    /// Adds the row of `batch`, and returns the mark after the batch.
    pub(super) fn note(&mut self, base: &Mark, batch: &Batch) -> Mark {
        let Some(batches) = &mut self.batches else {
            return Mark {
                last: base.last + batch.records.len() as u64,
                ..*base
            };
        };
        let end = batch.end(base);
        let row = Row {
            first: base.last + 1,
            id: batch.id,
            end,
        };
        batches.insert(end.last, row);
        end
    }

    pub(super) fn tail(&self, after: &Mark) -> Tail {
        let end = self.mark();
        if end == *after {
            return Tail::empty(end);
        }
        let known = match &self.batches {
            Some(batches) if after.epoch == self.epoch && after.last <= self.last => batches,
            _ => return Tail::Reload,
        };
        let mut end = *after;
        let mut found = Vec::new();
        for (_, row) in known.range(after.last + 1..).take(TAIL) {
            let records = self.records.range(row.first..=row.end.last);
            let batch = Batch {
                id: row.id,
                writer: 0,
                records: records.map(|(_, record)| record.clone()).collect(),
            };
            let whole = batch.records.len() as u64 == row.end.last + 1 - row.first;
            if row.first != end.last + 1 || !whole || batch.end(&end) != row.end {
                return Tail::Reload;
            }
            end = row.end;
            found.push(batch.records);
        }
        if found.is_empty() {
            return Tail::Reload;
        }
        Tail::Batches {
            more: found.len() == TAIL,
            batches: found,
            end,
        }
    }

    /// Drops the rows of batches up to `floor`, except for the last of them.
    pub(super) fn forget_batches(&mut self, floor: u64) {
        let last = self.last;
        if let Some(batches) = &mut self.batches {
            while let Some(entry) = batches.first_entry()
                && *entry.key() <= floor
                && *entry.key() != last
            {
                entry.remove();
            }
        }
    }

    /// Passes the ends of batches to `visit`.
    pub(super) fn places(&self, visit: &mut dyn FnMut(Mark)) {
        for row in self.batches.iter().flat_map(|all| all.values()) {
            visit(row.end);
        }
    }

    pub(super) fn begin_epoch(&mut self, lost: usize) {
        let revisions: Vec<u64> = self.records.keys().rev().take(lost).copied().collect();
        for revision in revisions {
            self.forget(revision);
        }
        self.epoch += 1;
        self.last += JUMP;
        self.floor = self.last;
        if let Some(batches) = &mut self.batches {
            batches.clear();
        }
    }
}

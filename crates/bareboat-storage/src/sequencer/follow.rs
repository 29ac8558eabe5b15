//! Writing to a log that others write to as well: the engine numbers and decides, and everyone follows the log.
//!
//! A write is judged here first, then by the engine; its answer waits until the log, followed, has reached it.

use std::collections::BTreeMap;
use std::sync::Arc;

use ahash::AHashSet;

use super::decide::{Prepared, PreparedChange};
use super::{Answer, Command, Sequencer, Unit, describe};
use crate::backend::{Outcome, Record};
use crate::event::Event;
use crate::value::Value;
use crate::write::Committed;

/// Answers owed once the log has been followed so far.
#[derive(Default)]
pub(super) struct Waiting {
    written: BTreeMap<u64, Answer>,
    /// Units that lost in the engine, to be judged again when their loss can be seen.
    lost: Vec<(u64, Unit)>,
}

impl Sequencer {
    pub(super) fn commit_among_others(&mut self, units: Vec<Unit>) {
        let mut keys = AHashSet::new();
        let (mut batch, mut records) = (Vec::new(), Vec::new());
        let mut later = Vec::new();
        for unit in units {
            // Transactions were refused at the door: each unit is one write.
            let Some(write) = unit.writes.first() else {
                continue;
            };
            if !keys.insert((write.resource.id, write.key.clone())) {
                // Judged against the outcome of the first, which only the engine knows.
                later.push(unit);
                continue;
            }
            let found = write.resource.get(&write.key);
            match write.judge(found.as_ref()) {
                Err(error) => unit.answer.send(Err((0, error))),
                Ok(()) => {
                    records.push(record_of(write, found.map_or(0, |entry| entry.revision())));
                    batch.push(unit);
                }
            }
        }
        // Before whatever is queued already, and in their order.
        for unit in later.into_iter().rev() {
            self.backlog.push_front(Command::Commit(unit));
        }
        if records.is_empty() {
            return;
        }
        match self.shared.core.backend.commit(&records) {
            Ok(outcomes) => {
                for (unit, outcome) in batch.into_iter().zip(outcomes) {
                    match outcome {
                        Outcome::Written(revision) => {
                            self.waiting.written.insert(revision, unit.answer);
                        }
                        Outcome::Lost(revision) => self.waiting.lost.push((revision, unit)),
                    }
                }
            }
            Err(error) => {
                let failure = self.failure(error);
                for unit in batch {
                    unit.answer.send(Err((0, failure.clone())));
                }
            }
        }
        self.settle_losers();
    }

    /// Applies what the log has grown by, ours and theirs, and answers who waited for it.
    pub(super) fn take_in(&mut self, records: Vec<Record>) {
        let mut answers = Vec::new();
        for record in records {
            if record.revision <= self.last {
                continue;
            }
            self.last = record.revision;
            let resource = self.shared.resource(&record.resource);
            let found = resource.get(&record.key);
            let value = record.value.as_ref();
            let entry = value.map(|value| value.entry(&record.key, record.revision));
            let entry = match entry.transpose() {
                Ok(entry) => entry,
                Err(error) => return self.shared.core.poison(describe(&error)),
            };
            let gauge = &self.shared.core.frames;
            let Some(event) = Event::new(record.revision, entry, found, gauge) else {
                continue;
            };
            if let Some(answer) = self.waiting.written.remove(&record.revision) {
                let committed = Committed {
                    revision: event.rev,
                    entry: event.entry.clone(),
                    previous: event.prev.clone(),
                };
                answers.push((answer, committed));
            }
            self.apply(&mut [(resource, Arc::new(event))]);
        }
        for (answer, committed) in answers {
            answer.send(Ok(smallvec::smallvec![committed]));
        }
        self.settle_losers();
        self.wake_everyone();
    }

    /// Judges again who lost to something that can be seen by now.
    fn settle_losers(&mut self) {
        let last = self.last;
        let seen = self
            .waiting
            .lost
            .extract_if(.., |(revision, _)| *revision <= last);
        for (_, unit) in seen {
            self.backlog.push_front(Command::Commit(unit));
        }
    }
}

fn record_of(write: &Prepared, prev: u64) -> Record {
    Record {
        revision: 0,
        prev,
        resource: write.resource.name.clone(),
        key: write.key.clone(),
        value: match &write.change {
            PreparedChange::Put { value, .. } => Some(Value::new(value.clone())),
            PreparedChange::Delete => None,
        },
    }
}

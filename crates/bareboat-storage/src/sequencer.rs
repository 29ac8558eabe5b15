//! The sequencer puts writes in order: decide, number, make durable, apply, announce, answer.
//!
//! It is one thread for the lifetime of the store. It calls the engine directly, so a single writer waits for the fsync
//! and two hops between threads (about 15 µs). Writes that queue in the meantime share the next transaction. Nothing is
//! visible before it is durable. No write is answered before the whole batch is visible: a losing writer that was
//! answered early would reread stale state and spin.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::oneshot;

use crate::backend::Backend;
use crate::batch::Mark;
use crate::event::Event;
use crate::resource::Resource;
use crate::retention::Retention;
use crate::store::Shared;
use crate::write::CommitError;

mod append;
mod decide;
mod follow;
mod house;
mod unit;

use append::Unresolved;
pub(crate) use decide::{Prepared, PreparedChange};
pub(crate) use unit::{Answer, Command, Unit, UnitResult};

/// Events with their resources, in order.
pub(crate) type Events = Vec<(Arc<Resource>, Arc<Event>)>;

/// The state of the sequencer's thread.
pub(crate) struct Sequencer {
    shared: Arc<Shared>,
    /// The known end of the log.
    mark: Mark,
    /// Identifies this store among the writers of the log.
    writer: u128,
    /// The number of batches made so far.
    batches: u64,
    unresolved: Option<Unresolved>,
    backlog: VecDeque<Command>,
    retention: Retention,
    sweeping: bool,
    /// When to retry compaction after there was no space for it.
    sweep_again: Option<Instant>,
    /// Callers that wait for the end of a compaction.
    compacting: Vec<oneshot::Sender<()>>,
    wake: Vec<Waker>,
    closing: Vec<oneshot::Sender<()>>,
    /// Whether the last batch was rejected for lack of space. Deletions are then not mixed with other writes, because
    /// there may be space for deletions.
    refused: bool,
    complaints: Complaints,
}

/// Reads the age of the history from the log, so that the age does not start at zero with every restart.
fn recall(backend: &dyn Backend, retention: &mut Retention, last: u64) {
    let (now, clock) = (Instant::now(), SystemTime::now());
    let mut told = None;
    let recalled = backend.history(&mut |written| {
        // A time in the future means that the clock was set back.
        let age = clock.duration_since(written.at).unwrap_or_default();
        let at = now.checked_sub(age).unwrap_or(now);
        retention.note(at, written.last, written.bytes);
        told = Some((at, written.last));
    });
    if let Err(error) = recalled {
        tracing::warn!(error = %describe(&error), "the age of the history is not known");
    }
    match told {
        Some((at, told)) if told >= last => retention.end(at, told),
        _ => retention.end(now, last),
    }
}

/// The maximum bytes of records in one transaction, so that a batch of large values does not delay
/// other writers.
const BATCH_BYTES: usize = 8 << 20;

impl Sequencer {
    pub(crate) fn new(shared: Arc<Shared>, mark: Mark) -> Self {
        let options = &shared.core.options;
        let last = mark.last;
        let mut retention = Retention::new(options);
        if shared.core.floor() < last {
            recall(&*shared.core.backend, &mut retention, last);
        }
        let sequencer = Self {
            mark,
            writer: uuid::Uuid::new_v4().as_u128(),
            batches: 0,
            unresolved: None,
            retention,
            shared,
            backlog: VecDeque::new(),
            // A crash may have left a compaction unfinished.
            sweeping: true,
            sweep_again: None,
            compacting: Vec::new(),
            wake: Vec::new(),
            closing: Vec::new(),
            refused: false,
            complaints: Complaints::default(),
        };
        sequencer.tell_state();
        sequencer
    }

    /// Runs commands until the store is closed.
    pub(crate) fn run(mut self) {
        loop {
            if self.backlog.is_empty() {
                let until = match self.sweeping {
                    true => Some(Instant::now()),
                    false => (self.retention.deadline().into_iter())
                        .chain(self.sweep_again)
                        .chain(self.shared.core.pins.lock().deadline())
                        .min(),
                };
                if self.shared.queue.drain(&mut self.backlog, until).is_err() {
                    break;
                }
                // Releases room for the commands in hand: queued and running commands are bounded
                // by twice the queue.
                let weights = self.backlog.iter().filter_map(|command| match command {
                    Command::Commit(unit) => Some(unit.weight()),
                    _ => None,
                });
                self.shared.queue.make_room(weights);
            }
            self.step();
            self.keep_house();
            self.tell_state();
        }
        self.finish();
    }

    /// Updates the metrics of the epoch and of the age of the history.
    fn tell_state(&self) {
        let core = &self.shared.core;
        let oldest = self.retention.oldest(core.floor());
        core.activity.state(self.mark.epoch, oldest);
    }

    fn finish(&mut self) {
        let core = &self.shared.core;
        if let Err(error) = core.backend.close() {
            tracing::warn!(error = %describe(&error), "the log was not closed cleanly");
        }
        self.shared.end(&mut self.wake);
        self.wake_everyone();
        for done in self.closing.drain(..) {
            let _ = done.send(());
        }
    }

    /// Runs the commands at the head of the backlog.
    fn step(&mut self) {
        match self.backlog.front() {
            None => {}
            Some(Command::Commit(_)) => {
                let units = self.next_batch();
                match self.shared.core.poisoned() {
                    Some(reason) => append::refuse(units, &CommitError::Poisoned(reason)),
                    None => self.commit(units),
                }
            }
            Some(_) => match self.backlog.pop_front() {
                Some(Command::CatchUp(done)) => {
                    let Some(done) = done else {
                        // Reset the flag before the log is read: a later request is for later writes.
                        self.shared.asked.store(false, Ordering::SeqCst);
                        // Often the reads saw the end of this store's own batch, which is applied by now.
                        if self.shared.core.visible() < self.shared.wanted.load(Ordering::SeqCst) {
                            self.follow();
                        }
                        return;
                    };
                    // The caller may have stopped waiting.
                    let _ = done.send(self.follow());
                }
                Some(Command::Compact(upto, done)) => {
                    self.raise_floor(upto.min(self.mark.last));
                    self.compacting.push(done);
                }
                Some(Command::Close(done)) => {
                    self.shared.queue.close();
                    self.closing.push(done);
                }
                _ => {}
            },
        }
    }

    /// Returns the units that share the next transaction.
    fn next_batch(&mut self) -> Vec<Unit> {
        let max = self.shared.core.options.max_batch.max(1);
        let limits = self.shared.core.limits;
        let mut units: Vec<Unit> = Vec::new();
        let (mut writes, mut bytes) = (0, 0);
        while writes < max && bytes < BATCH_BYTES {
            match self.backlog.pop_front() {
                Some(Command::Commit(unit)) => {
                    if self.refused && units.first().is_some_and(|first| !first.goes_with(&unit)) {
                        self.backlog.push_front(Command::Commit(unit));
                        break;
                    }
                    writes += unit.writes.len();
                    bytes += unit.bytes();
                    let fits = writes <= limits.records && bytes <= limits.bytes;
                    // A unit is never split. The size of a single unit was checked before it was queued.
                    if !fits && !units.is_empty() {
                        self.backlog.push_front(Command::Commit(unit));
                        break;
                    }
                    units.push(unit);
                }
                Some(other) => {
                    self.backlog.push_front(other);
                    break;
                }
                None => break,
            }
        }
        units
    }

    /// Makes committed events visible: maps, rings and marks, then the counter.
    fn apply(&mut self, events: &mut [(Arc<Resource>, Arc<Event>)]) {
        let Some(revision) = events.last().map(|(_, event)| event.rev) else {
            return;
        };
        let core = &self.shared.core;
        let in_order = match events {
            [_] => None,
            _ => Some(events.to_vec()),
        };
        // A stable sort keeps the order within a resource, and each resource is locked once.
        events.sort_by_key(|(resource, _)| resource.id);
        for group in events.chunk_by(|a, b| a.0.id == b.0.id) {
            group[0]
                .0
                .apply(group.iter().map(|(_, event)| event), &mut self.wake);
        }
        let recent = in_order.as_deref().unwrap_or(events);
        (self.shared.recent.lock()).push(recent, &core.options, &mut self.wake);
        core.advance(revision);
        let bytes = |(_, event): &(_, Arc<Event>)| event.persisted_bytes();
        let bytes = recent.iter().map(bytes).sum();
        self.retention.note(Instant::now(), revision, bytes);
    }

    /// Wakes the watchers of the last batch, each once, outside of all locks and after the writers were answered.
    fn wake_everyone(&mut self) {
        self.wake.drain(..).for_each(Waker::wake);
    }
}

/// The minimum time between two log lines about rejected batches.
const BETWEEN_COMPLAINTS: Duration = Duration::from_secs(10);

/// Limits the log lines about rejected batches.
#[derive(Default)]
struct Complaints {
    last: Option<Instant>,
    silent: u64,
}

pub(crate) fn describe(error: &dyn std::error::Error) -> Arc<str> {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text.into()
}

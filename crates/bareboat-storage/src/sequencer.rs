//! The one place where writes are put in order: decide, number, make durable, apply, announce, answer.
//!
//! One thread for the life of the store. It calls the engine directly, so a lone writer waits for one hop, the fsync
//! and one hop back (the hops measure some 15 µs); whatever queues meanwhile shares the next transaction. Nothing is visible before it is durable,
//! and nobody is answered before everything is visible: a loser answered early would reread stale state and spin.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::oneshot;

use crate::backend::{Backend, BackendError, Outcome, Record, Writers};
use crate::event::Event;
use crate::resource::Resource;
use crate::retention::Retention;
use crate::store::Shared;
use crate::write::{CommitError, Committed, TransactionError};

mod decide;
mod follow;
mod house;

use decide::{Decisions, Verdict};
pub(crate) use decide::{Prepared, PreparedChange};

/// What the sequencer is asked to do.
pub(crate) enum Command {
    /// Carry out a unit of writes, all or nothing.
    Commit(Unit),
    /// Take in what the log of several writers has grown by.
    Followed(Vec<Record>),
    /// Compact up to a revision now.
    Compact(u64, oneshot::Sender<()>),
    /// Finish what is queued, then end.
    Close(oneshot::Sender<()>),
}

/// Writes that happen together or not at all.
pub(crate) struct Unit {
    pub(crate) writes: smallvec::SmallVec<[Prepared; 1]>,
    pub(crate) answer: Answer,
}

impl Unit {
    /// What it takes of the queue: giants count for many.
    pub(crate) fn weight(&self) -> u32 {
        const BYTES: usize = 16 << 10;
        let each = |write: &Prepared| 1 + write.len() / BYTES;
        self.writes.iter().map(each).sum::<usize>() as u32
    }

    /// Whether both lead to less being stored, or neither.
    fn goes_with(&self, other: &Unit) -> bool {
        self.frees() == other.frees()
    }

    fn frees(&self) -> bool {
        self.writes.iter().all(Prepared::frees)
    }
}

/// Who waits for a unit.
pub(crate) enum Answer {
    One(oneshot::Sender<Result<Committed, CommitError>>),
    Many(oneshot::Sender<Result<Vec<Committed>, TransactionError>>),
}

/// A unit's writes after the commit, or which of them failed and why.
pub(crate) type UnitResult = Result<smallvec::SmallVec<[Committed; 1]>, (usize, CommitError)>;

impl Answer {
    fn send(self, result: UnitResult) {
        // Who hung up does not want to know; the write stands all the same.
        match self {
            Self::One(to) => {
                let result = result.map_err(|(_, error)| error);
                let _ = to.send(result.and_then(|mut all| all.pop().ok_or(CommitError::Closed)));
            }
            Self::Many(to) => {
                let result = result.map(|all| all.into_vec());
                let _ = to.send(result.map_err(|(index, error)| TransactionError { index, error }));
            }
        }
    }
}

/// The thread's state.
pub(crate) struct Sequencer {
    shared: Arc<Shared>,
    /// The last revision given out.
    last: u64,
    backlog: VecDeque<Command>,
    retention: Retention,
    sweeping: bool,
    /// When to sweep again after there was no space for it.
    sweep_again: Option<Instant>,
    /// Who asked for a compaction and waits for its end.
    compacting: Vec<oneshot::Sender<()>>,
    waiting: follow::Waiting,
    wake: Vec<Waker>,
    closing: Vec<oneshot::Sender<()>>,
    /// Whether the last batch was refused for want of space: then deletions are not mixed with other writes, since there
    /// may be space for them.
    refused: bool,
    complaints: Complaints,
}

/// Takes the age of the history from the log, so that it does not begin anew with every start.
fn recall(backend: &dyn Backend, retention: &mut Retention, last: u64) {
    let (now, clock) = (Instant::now(), SystemTime::now());
    let mut told = None;
    let recalled = backend.history(&mut |written| {
        // A time in the future is that of a clock that was set back.
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

/// Values in one transaction are bounded in bytes too, so that a batch of giants does not hold up everyone.
const BATCH_BYTES: usize = 8 << 20;

impl Sequencer {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let options = &shared.core.options;
        let last = shared.core.visible();
        let mut retention = Retention::new(options);
        if shared.core.floor() < last {
            recall(&*shared.core.backend, &mut retention, last);
        }
        Self {
            last,
            retention,
            shared,
            backlog: VecDeque::new(),
            // A crash may have left a compaction unfinished.
            sweeping: true,
            sweep_again: None,
            compacting: Vec::new(),
            waiting: follow::Waiting::default(),
            wake: Vec::new(),
            closing: Vec::new(),
            refused: false,
            complaints: Complaints::default(),
        }
    }

    /// Runs until the store is closed.
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
                // Room for as many as are in hand: what waits is bounded by twice the queue.
                let weights = self.backlog.iter().filter_map(|command| match command {
                    Command::Commit(unit) => Some(unit.weight()),
                    _ => None,
                });
                self.shared.queue.make_room(weights);
            }
            self.step();
            self.keep_house();
        }
        self.finish();
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

    /// Carries out the commands at the head of the backlog.
    fn step(&mut self) {
        match self.backlog.front() {
            None => {}
            Some(Command::Commit(_)) => {
                let units = self.next_batch();
                match self.shared.core.poisoned() {
                    Some(reason) => {
                        for unit in units {
                            unit.answer
                                .send(Err((0, CommitError::Poisoned(reason.clone()))));
                        }
                    }
                    None if self.shared.core.backend.writers() == Writers::Many => {
                        self.commit_among_others(units);
                    }
                    None => self.commit(units),
                }
            }
            Some(_) => match self.backlog.pop_front() {
                Some(Command::Followed(records)) => self.take_in(records),
                Some(Command::Compact(upto, done)) => {
                    self.raise_floor(upto.min(self.last));
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

    /// Everything that may share the next transaction.
    fn next_batch(&mut self) -> Vec<Unit> {
        let max = self.shared.core.options.max_batch.max(1);
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
                    bytes += unit.writes.iter().map(Prepared::len).sum::<usize>();
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

    fn commit(&mut self, units: Vec<Unit>) {
        let mut decisions = Decisions::new(self.last);
        let verdicts: Vec<(Answer, Verdict)> = units
            .into_iter()
            .map(|unit| (unit.answer, decisions.decide(unit.writes)))
            .collect();
        let Decisions {
            last,
            records,
            mut events,
            ..
        } = decisions;
        if !records.is_empty() {
            match self.shared.core.backend.commit(&records) {
                Ok(outcomes) => {
                    debug_assert!(
                        (outcomes.iter().zip(&records))
                            .all(|(outcome, r)| *outcome == Outcome::Written(r.revision))
                    );
                }
                Err(error) => return self.fail(verdicts, error),
            }
            drop(records);
            self.refused = false;
            self.last = last;
            self.apply(&mut events);
        }
        for (answer, verdict) in verdicts {
            answer.send(verdict.result);
        }
        self.wake_everyone();
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
        // Stable: within a resource the order stays, and each is locked once.
        events.sort_by_key(|(resource, _)| resource.id);
        for group in events.chunk_by(|a, b| a.0.id == b.0.id) {
            group[0]
                .0
                .apply(group.iter().map(|(_, event)| event), &mut self.wake);
        }
        let recent = in_order.as_deref().unwrap_or(events);
        (self.shared.recent.lock()).push(recent, &core.options, &mut self.wake);
        core.advance(revision);
        let bytes = |(_, event): &(_, Arc<Event>)| event.stored_bytes();
        let bytes = recent.iter().map(bytes).sum();
        self.retention.note(Instant::now(), revision, bytes);
    }

    /// Wakes whom the last batch concerns, each once, outside every lock and after the writers have their answers.
    fn wake_everyone(&mut self) {
        self.wake.drain(..).for_each(Waker::wake);
    }

    /// What a failed commit means for those who asked for it.
    fn failure(&mut self, error: BackendError) -> CommitError {
        let (failure, words) = match &error {
            BackendError::Full(_) => (
                CommitError::Full,
                "no space left for the log: writes fail, reads go on",
            ),
            BackendError::Busy(_) => (
                CommitError::Busy,
                "another program holds the log: writes fail, reads go on",
            ),
            _ => {
                let reason = describe(&error);
                self.shared.core.poison(reason.clone());
                return CommitError::Unknown(reason);
            }
        };
        self.refused = true;
        if let Some(batches) = self.complaints.due(Instant::now()) {
            tracing::error!(error = %describe(&error), batches, "{words}");
        }
        failure
    }

    fn fail(&mut self, verdicts: Vec<(Answer, Verdict)>, error: BackendError) {
        let failure = self.failure(error);
        for (answer, verdict) in verdicts {
            // Who lost against something that was never written did not lose.
            let result = match verdict.result {
                Err(lost) if !verdict.on_batch => Err(lost),
                _ => Err((0, failure.clone())),
            };
            answer.send(result);
        }
    }
}

/// Refused batches are logged at most this often.
const BETWEEN_COMPLAINTS: Duration = Duration::from_secs(10);

/// What was said about refused batches.
#[derive(Default)]
struct Complaints {
    last: Option<Instant>,
    silent: u64,
}

impl Complaints {
    /// How many batches were refused since the last line, if it is time for another.
    fn due(&mut self, now: Instant) -> Option<u64> {
        self.silent += 1;
        if self
            .last
            .is_some_and(|last| now.duration_since(last) < BETWEEN_COMPLAINTS)
        {
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.silent))
    }
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

//! The only path of writes: decide, number, append, apply, answer.
//!
//! If the log has grown, an append returns the missed batches, and the same units are decided again. After a few such
//! conflicts the next attempt locks the log, so that no store waits forever.

use std::time::Instant;

use super::decide::{Decisions, Verdict};
use super::{Complaints, Events, Sequencer, Unit, describe};
use crate::activity::Resolution;
use crate::backend::{BackendError, Record};
use crate::batch::{Appended, Batch, Mark, Tail};
use crate::write::CommitError;

/// The number of conflicts after which the log is locked.
const TRIES: u32 = 4;

/// A batch whose outcome is not known yet. No other batch is appended until it is known.
pub(super) struct Unresolved {
    base: Mark,
    batch: Batch,
    events: Events,
}

/// Units with the decisions about them.
struct Decided {
    verdicts: Vec<Verdict>,
    records: Vec<Record>,
    events: Events,
}

impl Sequencer {
    pub(super) fn commit(&mut self, units: Vec<Unit>) {
        if let Err(error) = self.resolve() {
            let error = self.failure(error);
            return refuse(units, &error);
        }
        let mut lost = 0;
        // Whether everything written before this commit is known. An append would show it, but nothing is appended for
        // refused units.
        let mut proven = !self.shared.core.shared;
        loop {
            if lost >= TRIES {
                return self.commit_held(units);
            }
            let mut decided = self.decide(&units);
            if decided.records.is_empty() {
                if proven {
                    return self.answer(units, decided.verdicts);
                }
                // Catch up only once: other stores may write all the time.
                if let Err(error) = self.catch_up() {
                    return self.fail(units, decided.verdicts, error);
                }
                proven = true;
                continue;
            }
            let batch = self.batch(std::mem::take(&mut decided.records));
            let (base, begun) = (self.mark, Instant::now());
            match self.append(&base, &batch) {
                Ok(Appended::Done(end)) => {
                    drop(batch);
                    self.finish_commit(units, decided, end);
                    // Whatever was acknowledged before the append began is below its batch.
                    self.shared.core.proven_fresh(begun);
                    return;
                }
                Ok(Appended::Moved(tail)) => {
                    lost += 1;
                    if let Err(error) = self.take_in(tail) {
                        return self.fail(units, decided.verdicts, error);
                    }
                }
                Err(error) => return self.undone(units, decided, base, batch, error),
            }
        }
    }

    /// Commits while no other store can write.
    fn commit_held(&mut self, units: Vec<Unit>) {
        let backend = self.shared.core.backend.clone();
        loop {
            let mut latest = None;
            let mut failed = None;
            let mut partial = false;
            let base = self.mark;
            let begun = Instant::now();
            let appended = backend.append_held(&base, &mut |tail| {
                partial = matches!(tail, Tail::Batches { more: true, .. });
                if let Err(error) = self.take_in(tail) {
                    failed = Some(error);
                    return None;
                }
                let mut decided = self.decide(&units);
                let records = std::mem::take(&mut decided.records);
                let batch = (!records.is_empty()).then(|| (self.mark, self.batch(records)));
                latest = Some((decided, batch.clone()));
                batch
            });
            let activity = &self.shared.core.activity;
            activity.held();
            match &appended {
                Ok(Some(appended)) => activity.appended(begun, Ok(appended)),
                // There was nothing to append.
                Ok(None) => {}
                Err(error) => activity.appended(begun, Err(error)),
            }
            let appended = match failed {
                Some(error) => Err(error),
                None => appended,
            };
            match (appended, latest) {
                // The units were refused by a state that may be older than they are. The state is applied, and more
                // batches follow.
                (Ok(None), Some(_)) if partial => {}
                (Ok(None), Some((decided, _))) => return self.answer(units, decided.verdicts),
                (Ok(Some(Appended::Done(end))), Some((decided, _))) => {
                    return self.finish_commit(units, decided, end);
                }
                (Ok(Some(Appended::Moved(tail))), _) => {
                    if let Err(error) = self.take_in(tail) {
                        let error = self.failure(error);
                        return refuse(units, &error);
                    }
                }
                (Err(error), Some((decided, Some((base, batch))))) => {
                    return self.undone(units, decided, base, batch, error);
                }
                (Err(error), _) => {
                    let error = self.failure(error);
                    return refuse(units, &error);
                }
                // The engine did not call the decision function; the next attempt may call it.
                (Ok(_), None) => {}
            }
        }
    }

    fn append(&self, base: &Mark, batch: &Batch) -> Result<Appended, BackendError> {
        let core = &self.shared.core;
        let begun = Instant::now();
        let appended = core.backend.append(base, batch);
        core.activity.appended(begun, appended.as_ref());
        appended
    }

    fn decide(&self, units: &[Unit]) -> Decided {
        let writes = units.iter().map(|unit| unit.writes.len()).sum();
        let mut decisions = Decisions::new(self.mark.last, writes);
        let verdicts = units
            .iter()
            .map(|unit| decisions.decide(&unit.writes))
            .collect();
        Decided {
            verdicts,
            records: decisions.records,
            events: decisions.events,
        }
    }

    fn batch(&mut self, records: Vec<Record>) -> Batch {
        self.batches += 1;
        Batch {
            id: self.writer ^ u128::from(self.batches),
            writer: self.writer,
            records,
        }
    }

    fn finish_commit(&mut self, units: Vec<Unit>, mut decided: Decided, end: Mark) {
        self.refused = false;
        let records = end.last.saturating_sub(self.mark.last);
        self.shared.core.activity.stored(records);
        self.mark = end;
        self.apply(&mut decided.events);
        self.answer(units, decided.verdicts);
    }

    fn answer(&mut self, units: Vec<Unit>, verdicts: Vec<Verdict>) {
        for (unit, verdict) in units.into_iter().zip(verdicts) {
            unit.answer.send(verdict.result);
        }
        self.wake_everyone();
    }

    /// Handles an append that failed.
    fn undone(
        &mut self,
        units: Vec<Unit>,
        decided: Decided,
        base: Mark,
        batch: Batch,
        error: BackendError,
    ) {
        if matches!(error, BackendError::Unknown(_)) {
            let events = decided.events;
            self.shared.core.activity.unresolved();
            self.unresolved = Some(Unresolved {
                base,
                batch,
                events,
            });
        }
        self.fail(units, decided.verdicts, error);
    }

    /// Finds out whether the last batch is in the log, if that is not known.
    pub(super) fn resolve(&mut self) -> Result<(), BackendError> {
        let Some(unresolved) = self.unresolved.take() else {
            return Ok(());
        };
        let Unresolved { base, batch, .. } = &unresolved;
        let appended = self.append(base, batch);
        let core = self.shared.core.clone();
        let activity = &core.activity;
        match appended {
            Ok(Appended::Done(end)) => {
                activity.resolved(Resolution::Stored);
                activity.stored(batch.records.len() as u64);
                tracing::info!(
                    last = end.last,
                    "a write with an unknown outcome is in the log"
                );
                self.mark = end;
                let mut events = unresolved.events;
                self.apply(&mut events);
                self.wake_everyone();
                Ok(())
            }
            Ok(Appended::Moved(tail)) => {
                activity.resolved(match tail {
                    Tail::Reload => Resolution::Reloaded,
                    Tail::Batches { .. } => Resolution::Absent,
                });
                tracing::info!("a write with an unknown outcome is not in the log");
                self.take_in(tail)
            }
            // A log that cannot be written may not have been searched for the batch.
            Err(
                error @ (BackendError::Unknown(_)
                | BackendError::Unreachable(_)
                | BackendError::ReadOnly(_)),
            ) => {
                self.unresolved = Some(unresolved);
                // The units that wait now were not sent.
                Err(BackendError::Unreachable(describe(&error).as_ref().into()))
            }
            // The batch was rolled back, or the log is unusable.
            Err(error) => {
                activity.resolved(match &error {
                    BackendError::Full(_) | BackendError::Busy(_) => Resolution::Absent,
                    _ => Resolution::Failed,
                });
                Err(error)
            }
        }
    }

    /// Converts a failed append to the error of its writers.
    pub(super) fn failure(&mut self, error: BackendError) -> CommitError {
        let (failure, words) = match &error {
            BackendError::Full(_) => (
                CommitError::Full,
                "no space left for the log: writes fail, reads still work",
            ),
            BackendError::ReadOnly(_) => (
                CommitError::ReadOnly,
                "the log cannot be written: writes fail, reads still work",
            ),
            BackendError::Busy(_) => (
                CommitError::Busy,
                "another program locks the log: writes fail, reads still work",
            ),
            BackendError::Unreachable(_) => (
                CommitError::Unreachable,
                "the log cannot be reached: writes fail, reads still work",
            ),
            BackendError::Unknown(_) => (
                CommitError::Unknown(describe(&error)),
                "the log cannot be reached, and the outcome of some writes is not known",
            ),
            _ => {
                let reason = describe(&error);
                self.shared.core.poison(reason.clone());
                return CommitError::Unknown(reason);
            }
        };
        self.refused = matches!(
            error,
            BackendError::Full(_) | BackendError::ReadOnly(_) | BackendError::Busy(_)
        );
        if let Some(batches) = self.complaints.due(Instant::now()) {
            tracing::error!(error = %describe(&error), batches, "{words}");
        }
        failure
    }

    fn fail(&mut self, units: Vec<Unit>, verdicts: Vec<Verdict>, error: BackendError) {
        let failure = self.failure(error);
        // Other stores may have changed the objects that a refused write was compared with.
        let proven = !self.shared.core.shared;
        for (unit, verdict) in units.into_iter().zip(verdicts) {
            // A conflict with another write of this batch does not count, because that write was not stored.
            let result = match verdict.result {
                Err(lost) if proven && !verdict.on_batch => Err(lost),
                _ => Err((0, failure.clone())),
            };
            unit.answer.send(result);
        }
        self.wake_everyone();
    }
}

pub(super) fn refuse(units: Vec<Unit>, error: &CommitError) {
    for unit in units {
        unit.answer.send(Err((0, error.clone())));
    }
}

impl Complaints {
    /// Returns the number of batches rejected since the last log line, if another line is due.
    fn due(&mut self, now: Instant) -> Option<u64> {
        self.silent += 1;
        if self
            .last
            .is_some_and(|last| now.duration_since(last) < super::BETWEEN_COMPLAINTS)
        {
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.silent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_line_about_rejected_batches_is_due_every_ten_seconds_and_counts_them_all() {
        let (mut complaints, start) = (Complaints::default(), Instant::now());
        let due = (0..60_000).filter_map(|at| complaints.due(start + Duration::from_millis(at)));
        let due: Vec<u64> = due.collect();
        assert_eq!(due, [1, 10_000, 10_000, 10_000, 10_000, 10_000]);
    }
}

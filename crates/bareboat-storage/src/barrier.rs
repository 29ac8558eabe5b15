//! The freshness barrier of a shared log. One read of the end of the log proves that everything older is known, for all
//! callers that wait when the read begins.
//!
//! A separate thread reads the end of the log, so that neither long reads nor a slow write delay it. There is at most
//! one read at a time, whatever the number of callers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use crate::activity::Activity;
use crate::backend::{Backend, BackendError};
use crate::batch::Mark;
use crate::sequencer::describe;

/// The end of the log, and the time when the read of it began.
pub(crate) type Proof = Result<(Mark, Instant), Arc<str>>;

/// The callers that wait for the end of the log.
#[derive(Default)]
pub(crate) struct Barrier {
    state: Mutex<State>,
    asked: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<oneshot::Sender<Proof>>,
    closed: bool,
}

/// From this number of callers on, a read is followed by a pause, so that more callers share the next read.
const SEVERAL: usize = 4;
/// The minimum time between the beginnings of two reads under load.
const GATHER: Duration = Duration::from_micros(500);

/// From this number of callers on, callers that no longer wait are removed at intervals.
const MANY: usize = 1024;

impl State {
    fn join(&mut self, to: oneshot::Sender<Proof>) {
        // A read takes long if the database does not answer, and callers give up in the meantime.
        let callers = self.waiting.len();
        if callers >= MANY && callers.is_power_of_two() {
            self.waiting.retain(|to| !to.is_closed());
        }
        self.waiting.push(to);
    }
}

impl Barrier {
    /// Returns the end of the log, read after this call began; `None` if the store was closed.
    pub(crate) async fn end(&self) -> Option<Proof> {
        let (to, proof) = oneshot::channel();
        {
            let mut state = self.state.lock();
            if state.closed {
                return None;
            }
            state.join(to);
        }
        self.asked.notify_one();
        proof.await.ok()
    }

    /// Ends the thread and all waits.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.waiting.clear();
        drop(state);
        self.asked.notify_one();
    }

    /// Reads the end of the log for waiting callers until the barrier is closed.
    pub(crate) fn serve(&self, backend: &dyn Backend, activity: &Activity) {
        loop {
            let waiting = {
                let mut state = self.state.lock();
                while state.waiting.is_empty() && !state.closed {
                    self.asked.wait(&mut state);
                }
                if state.closed {
                    return;
                }
                std::mem::take(&mut state.waiting)
            };
            let begun = Instant::now();
            let read: Result<Mark, BackendError> = backend.mark();
            let found = read.as_ref().ok().map(|end| end.last);
            activity.barrier(begun, waiting.len(), found);
            let callers = waiting.len();
            let proof = read
                .map(|end| (end, begun))
                .map_err(|error| describe(&error));
            for to in waiting {
                // The caller may no longer wait.
                let _ = to.send(proof.clone());
            }
            if callers >= SEVERAL {
                std::thread::sleep(GATHER.saturating_sub(begun.elapsed()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_that_gave_up_are_dropped() {
        let mut state = State::default();
        let (to, _waits) = oneshot::channel();
        state.join(to);
        for _ in 0..10 * MANY {
            state.join(oneshot::channel().0);
            assert!(state.waiting.len() <= MANY);
        }
        assert!(!state.waiting[0].is_closed());
    }
}

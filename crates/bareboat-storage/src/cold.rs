//! Long reads: old watches and old lists. One or two threads run them, away from the runtime's
//! workers, and end when idle.
//!
//! The number of queued reads is limited; further callers wait for a place. A caller that stops
//! waiting ends its read.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::sync::{Semaphore, oneshot};

use crate::backend::Stop;

type Job = Box<dyn FnOnce() + Send>;

/// A thread pool that starts threads for reads and ends idle ones.
pub(crate) struct ColdReads {
    desk: Arc<Desk>,
    places: Arc<Semaphore>,
}

struct Desk {
    state: Mutex<State>,
    ready: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    readers: usize,
    idle: usize,
}

/// The error when no thread could be started, or the read panicked.
#[derive(Debug)]
pub(crate) struct NoReader;

/// Stops a read when its caller no longer waits.
struct StopOnDrop(Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.request();
    }
}

const READERS: usize = 2;
/// The maximum number of queued and running reads.
const PLACES: usize = 64;
const LINGER: Duration = Duration::from_secs(2);

impl ColdReads {
    pub(crate) fn new() -> Self {
        Self {
            desk: Arc::new(Desk {
                state: Mutex::default(),
                ready: Condvar::new(),
            }),
            places: Arc::new(Semaphore::new(PLACES)),
        }
    }

    /// Waits for a place, then runs the read. Dropping the future releases the place and stops the
    /// read.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Stop) -> T + Send + Sync + 'static,
    ) -> Result<T, NoReader> {
        let place = self.places.clone().acquire_owned().await;
        let place = place.map_err(|_| NoReader)?;
        let stop = StopOnDrop(Stop::default());
        let stopped = stop.0.clone();
        let (answer, receiver) = oneshot::channel();
        self.push(Box::new(move || {
            let _place = place;
            if !stopped.requested() {
                // An error means that the caller no longer waits; the result is not needed then.
                let _ = answer.send(read(&stopped));
            }
        }));
        receiver.await.map_err(|_| NoReader)
    }

    /// Drops a value on one of the threads, because large values take long to free. The caller
    /// limits their number.
    pub(crate) fn discard<T: Send + 'static>(&self, value: T) {
        self.push(Box::new(move || drop(value)));
    }

    fn push(&self, job: Job) {
        let mut state = self.desk.state.lock();
        state.jobs.push_back(job);
        if state.idle > 0 || state.readers == READERS {
            self.desk.ready.notify_one();
            return;
        }
        let desk = self.desk.clone();
        let reader = std::thread::Builder::new().name("bareboat-read".into());
        match reader.spawn(move || desk.serve()) {
            Ok(_) => state.readers += 1,
            Err(error) => {
                tracing::error!(%error, "cannot start a thread for long reads");
                if state.readers == 0 {
                    state.jobs.clear();
                }
            }
        }
    }
}

impl Desk {
    fn serve(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                // A job that panics drops its sender; the caller sees a failed read.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
                state = self.state.lock();
                continue;
            }
            state.idle += 1;
            let waited = self.ready.wait_for(&mut state, LINGER);
            state.idle -= 1;
            if waited.timed_out() && state.jobs.is_empty() {
                state.readers -= 1;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;

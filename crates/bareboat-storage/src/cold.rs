//! Reads of the log itself, which are rare: old watches and old lists. A thread or two do them, and leave when idle.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

type Job = Box<dyn FnOnce() + Send>;

/// Threads that come when there is something to read and leave when there is not.
pub(crate) struct ColdReads(Arc<Desk>);

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

const READERS: usize = 2;
const LINGER: Duration = Duration::from_secs(2);

impl ColdReads {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Desk {
            state: Mutex::default(),
            ready: Condvar::new(),
        }))
    }

    /// Queues a read; the receiver fails if no thread could be had for it.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> oneshot::Receiver<T> {
        let (answer, receiver) = oneshot::channel();
        let mut state = self.0.state.lock();
        state.jobs.push_back(Box::new(move || {
            // Nobody waits any more if the reader hung up; then the result is of no use.
            let _ = answer.send(read());
        }));
        if state.idle > 0 || state.readers == READERS {
            self.0.ready.notify_one();
            return receiver;
        }
        let desk = self.0.clone();
        let reader = std::thread::Builder::new().name("bareboat-read".into());
        match reader.spawn(move || desk.serve()) {
            Ok(_) => state.readers += 1,
            Err(error) => {
                tracing::error!(%error, "no thread for reading the log");
                if state.readers == 0 {
                    state.jobs.clear();
                }
            }
        }
        receiver
    }
}

impl Desk {
    fn serve(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                // A job that panics drops its answer, which its reader sees as a failed read.
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

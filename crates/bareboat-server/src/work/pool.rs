//! The threads that large work runs on.
//!
//! They leave the processor to all other threads of the process. On a machine with few cores, a worker of the runtime that
//! wakes up would otherwise have to wait until one of these threads has used up its share of the processor.

use bareboat_process::Polite;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;

/// How much lower their priority is. While other threads want the processor, too, they get a sixth of an equal share:
/// enough to go on beside programs that are always busy.
const NICER_BY: i32 = 8;
/// How long a thread without work is kept.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Threads of a low priority, started when they are needed.
pub(super) struct Pool {
    threads: Handle,
    /// Has no workers and no drivers of its own; `None` only while it is dropped.
    runtime: Option<Runtime>,
}

impl Pool {
    pub(super) fn new(threads: usize) -> Pool {
        let polite = Polite::nicer_by(NICER_BY);
        let runtime = Builder::new_current_thread()
            .max_blocking_threads(threads)
            .thread_keep_alive(KEEP_ALIVE)
            .thread_name("bareboat-large")
            .on_thread_start(move || lower_priority(polite))
            .build()
            .expect("a runtime without drivers needs nothing from the system");
        Pool {
            threads: runtime.handle().clone(),
            runtime: Some(runtime),
        }
    }

    /// Runs work on one of the threads, in the context of the current runtime.
    pub(super) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let outer = Handle::current();
        let work = move || {
            let _outer = outer.enter();
            work()
        };
        self.threads.spawn_blocking(work)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Does not wait, because this may be a worker of another runtime.
            runtime.shutdown_background();
        }
    }
}

/// Makes the current thread leave the processor to others.
fn lower_priority(polite: Option<Polite>) {
    if let Some(polite) = polite
        && let Err(error) = polite.apply()
    {
        tracing::debug!(%error, "a thread for large work keeps its priority");
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use rustix::process::getpriority_process;
    use std::sync::Arc;

    #[tokio::test]
    async fn a_thread_that_another_one_starts_has_the_same_priority() {
        let pool = Arc::new(Pool::new(2));
        let inner = pool.clone();
        let first = pool.run(move || {
            let (sender, receiver) = std::sync::mpsc::sync_channel(1);
            let first = std::thread::current().id();
            // This thread is busy, so it starts the second one.
            inner.run(move || {
                let second = (std::thread::current().id(), getpriority_process(None));
                sender.send(second).unwrap();
            });
            let (second, niceness) = receiver.recv().unwrap();
            assert_ne!(first, second);
            (getpriority_process(None).unwrap(), niceness.unwrap())
        });
        let (first, second) = first.await.unwrap();
        assert_eq!(first, second);
    }
}

//! Large work: what takes longer than others should wait for it.
//!
//! The runtime's workers serve everybody, so whatever they do must be over soon. A request starts on its worker and
//! stays there as long as it is small. Before something large it awaits [`large`], and a loop over many objects counts
//! in a [`Pace`] what it has done: from there on the rest of the request runs on threads of its own, at most as many at
//! a time as there are cores, and in turn. Its connection waits without a thread. When that wait ends early, because the
//! deadline passed or the client hung up, the work is interrupted and everything it held is given back.
//!
//! Waiting for others (a converter, a commit, a lock) takes up no thread: only polls of the request run there.

mod scope;

pub(crate) use scope::{seat, small, wanted};

use crate::flow::Seat;
use bareboat_api::interrupt::Interrupt;
use bareboat_api::kind::BoxFuture;
use scope::{Place, Scope};
use std::future::poll_fn;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};

/// So many bytes are parsed, printed or compared at once on a worker; more is large.
pub(crate) const LARGE: usize = 32 * 1024;
/// How many bytes a loop works on before it looks at the clock.
const ROUND: usize = 64 * 1024;
/// How long a loop may keep a worker busy: longer is large.
const ON_WORKER: Duration = Duration::from_millis(1);
/// How long a loop may keep a thread busy before other large work gets its turn.
const ON_THREAD: Duration = Duration::from_millis(10);
/// What it costs to walk past an entry, in bytes of work.
pub(crate) const STEP: usize = 64;

/// Threads for large work.
#[derive(Clone)]
pub(crate) struct Threads {
    places: Arc<Semaphore>,
}

impl Threads {
    /// As many as there are cores.
    pub(crate) fn new() -> Threads {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Threads {
            places: Arc::new(Semaphore::new(cores)),
        }
    }

    /// Carries out a request: on this worker while it is small, elsewhere when it becomes large. Dropping this ends it.
    pub(crate) async fn carry_out<T: Send + 'static>(
        &self,
        seat: Option<Arc<Seat>>,
        work: impl Future<Output = T> + Send + 'static,
    ) -> T {
        self.carry_out_boxed(seat, Box::pin(work)).await
    }

    /// The same for work that is on the heap already.
    pub(crate) async fn carry_out_boxed<T: Send + 'static>(
        &self,
        seat: Option<Arc<Seat>>,
        mut work: BoxFuture<'static, T>,
    ) -> T {
        let mut scope = Scope::new(seat);
        loop {
            let small = poll_fn(|cx| {
                let polled = scope.enter(|| work.as_mut().poll(cx));
                match polled {
                    Poll::Ready(done) => Poll::Ready(Some(done)),
                    Poll::Pending if scope.place() == Place::Leaving => Poll::Ready(None),
                    Poll::Pending => Poll::Pending,
                }
            });
            if let Some(done) = small.await {
                return done;
            }
            match self.carry_out_elsewhere(scope, work).await {
                Elsewhere::Done(done) => return done,
                Elsewhere::Back(same, rest) => (scope, work) = (same, rest),
            }
        }
    }

    /// Runs a request on other threads until it is done, or small again.
    async fn carry_out_elsewhere<T: Send + 'static>(
        &self,
        mut scope: Scope,
        mut work: BoxFuture<'static, T>,
    ) -> Elsewhere<T> {
        let waited_for = WaitedFor::default();
        let woken = Arc::new(Woken(Notify::new()));
        scope.moves_to(Place::Thread);
        loop {
            let place = self.places.clone().acquire_owned().await;
            let (interrupt, waker) = (waited_for.0.clone(), Waker::from(woken.clone()));
            let poll = move || {
                let _place = place;
                if interrupt.is_requested() {
                    return None;
                }
                let cx = &mut Context::from_waker(&waker);
                let polled = interrupt.watch(|| scope.enter(|| work.as_mut().poll(cx)));
                Some((scope, work, polled))
            };
            let polled = match tokio::task::spawn_blocking(poll).await {
                Ok(polled) => polled,
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => resume_unwind(panic),
                    // The runtime is shutting down.
                    Err(_) => None,
                },
            };
            match polled {
                Some((_, _, Poll::Ready(done))) => return Elsewhere::Done(done),
                Some((mut same, rest, Poll::Pending)) => {
                    if same.place() == Place::Returning {
                        same.moves_to(Place::Worker);
                        return Elsewhere::Back(same, rest);
                    }
                    (scope, work) = (same, rest);
                }
                None => return std::future::pending().await,
            }
            woken.0.notified().await;
        }
    }

    /// Runs a computation that needs nothing of its surroundings: on another thread if `size` is large.
    pub(crate) async fn compute<T: Send + 'static>(
        &self,
        size: usize,
        compute: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        if size <= LARGE {
            return compute();
        }
        self.carry_out(None, async move {
            large().await;
            compute()
        })
        .await
    }
}

/// What came of a request on another thread.
enum Elsewhere<T> {
    Done(T),
    /// It waits for something, and what follows is small.
    Back(Scope, BoxFuture<'static, T>),
}

/// Interrupts the work when it is dropped: its client has left.
#[derive(Default)]
struct WaitedFor(Interrupt);

impl Drop for WaitedFor {
    fn drop(&mut self) {
        self.0.request();
    }
}

/// Wakes the task that polls the work.
struct Woken(Notify);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.notify_one();
    }
}

/// What follows is large: the request goes on where it does not delay others.
pub(crate) async fn large() {
    poll_fn(|cx| {
        if !scope::grow() {
            return Poll::Ready(());
        }
        // In case something between here and the request polls its parts only when they wake it.
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// What follows may be large: it is if it works on so many bytes.
pub(crate) async fn maybe_large(size: usize) {
    if size > LARGE {
        large().await;
    }
}

/// Counts the work of a loop.
pub(crate) struct Pace {
    left: usize,
}

impl Pace {
    /// A loop that begins.
    pub(crate) fn new() -> Pace {
        Pace { left: ROUND }
    }

    /// Counts work on so many bytes; says whether [`turn`] is to be awaited.
    #[must_use]
    pub(crate) fn spend(&mut self, bytes: usize) -> bool {
        match self.left.checked_sub(bytes.max(1)) {
            Some(left) => {
                self.left = left;
                false
            }
            None => {
                self.left = ROUND;
                true
            }
        }
    }
}

/// Called by a loop that has done something: if it has taken long by now it becomes large work, or others get their turn.
pub(crate) async fn turn() {
    wanted().await;
    match scope::busy() {
        Some((Place::Worker | Place::Leaving, time)) if time >= ON_WORKER => large().await,
        Some((Place::Thread | Place::Returning, time)) if time >= ON_THREAD => {
            tokio::task::yield_now().await;
        }
        Some(_) => {}
        None => tokio::task::yield_now().await,
    }
}

#[cfg(test)]
mod tests;

//! Moves long computations off the runtime's workers.
//!
//! The runtime's workers are shared by all requests, so each poll must be short. A request starts on a worker and stays
//! there while its work is small. Before something large it awaits [`large`], and a loop over many objects counts its
//! work in a [`Pace`]. From there on the rest of the request runs on separate threads, at most one per core at a time,
//! in turn. Its connection waits without a thread. If that wait ends early, because of the deadline or because the
//! client disconnected, the work is interrupted and releases everything it holds.
//!
//! Waiting (for a converter, a commit, a lock) occupies no thread: only polls of the request run there.

mod pool;
mod scope;

pub(crate) use scope::{audit_id, seat, small, wanted};

use crate::diagnostics::Trace;
use crate::flow::Seat;
use bareboat_api::interrupt::Interrupt;
use bareboat_api::kind::BoxFuture;
use pool::Pool;
use scope::{PolledOn, Scope};
use std::future::poll_fn;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};

/// Input larger than this is not parsed, printed or compared on a worker.
pub(crate) const LARGE: usize = 32 * 1024;
/// How many bytes a loop processes before it checks the clock.
const ROUND: usize = 64 * 1024;
/// How long a loop may run on a worker before it moves to a thread.
const ON_WORKER: Duration = Duration::from_millis(1);
/// How long a loop may keep a thread before it yields to other large work.
const ON_THREAD: Duration = Duration::from_millis(10);
/// The cost of skipping an entry, in bytes of work.
pub(crate) const STEP: usize = 64;

/// Threads for large work.
#[derive(Clone)]
pub(crate) struct Threads {
    places: Arc<Semaphore>,
    /// The places of connections. A request that has got its place can use it only when its connection is polled. If both
    /// took places of the same kind, they could wait for each other.
    connections: Arc<Semaphore>,
    pool: Arc<Pool>,
    /// The audit ID of the request that they work for.
    audit_id: Option<Arc<str>>,
}

impl Threads {
    /// One thread per core.
    pub(crate) fn new() -> Threads {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Threads::limited_to(cores)
    }

    fn limited_to(threads: usize) -> Threads {
        Threads {
            places: Arc::new(Semaphore::new(threads)),
            connections: Arc::new(Semaphore::new(threads)),
            pool: Arc::new(Pool::new(threads)),
            audit_id: None,
        }
    }

    /// Returns the same threads for a request, whose work then knows its audit ID.
    pub(crate) fn of(&self, trace: &Trace) -> Threads {
        Threads {
            places: self.places.clone(),
            connections: self.connections.clone(),
            pool: self.pool.clone(),
            audit_id: Some(trace.shared_audit_id()),
        }
    }

    /// Runs a request: on this worker while it is small, on another thread once it is large. Dropping the future ends
    /// the work.
    ///
    /// Not an `async fn`: the work is boxed before anything waits, so that the futures around it stay small. They are
    /// moved several times for every request.
    pub(crate) fn carry_out<T: Send + 'static>(
        &self,
        seat: Option<Arc<Seat>>,
        work: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> + Send {
        self.carry_out_boxed(seat, Box::pin(work))
    }

    /// Runs a request as [`Threads::carry_out`] does, from a future that is already boxed.
    pub(crate) async fn carry_out_boxed<T: Send + 'static>(
        &self,
        seat: Option<Arc<Seat>>,
        mut work: BoxFuture<'static, T>,
    ) -> T {
        let mut scope = Scope::new(seat, self.audit_id.clone());
        loop {
            let small = poll_fn(|cx| {
                let polled = scope.enter(|| work.as_mut().poll(cx));
                match polled {
                    Poll::Ready(done) => Poll::Ready(Some(done)),
                    Poll::Pending if scope.polled_on() == PolledOn::Leaving => Poll::Ready(None),
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

    /// Runs a request on other threads until it is done or small again.
    async fn carry_out_elsewhere<T: Send + 'static>(
        &self,
        mut scope: Scope,
        mut work: BoxFuture<'static, T>,
    ) -> Elsewhere<T> {
        let waited_for = WaitedFor::default();
        let woken = Arc::new(Woken(Notify::new()));
        // What is logged on other threads belongs to the same request.
        let span = tracing::Span::current();
        scope.moves_to(PolledOn::Thread);
        loop {
            let (interrupt, waker) = (waited_for.0.clone(), Waker::from(woken.clone()));
            let span = span.clone();
            let poll = move || {
                let _span = span.enter();
                if interrupt.is_requested() {
                    return None;
                }
                let cx = &mut Context::from_waker(&waker);
                let polled = interrupt.watch(|| scope.enter(|| work.as_mut().poll(cx)));
                Some((scope, work, polled))
            };
            match self.run(&self.places, poll).await.flatten() {
                Some((_, _, Poll::Ready(done))) => return Elsewhere::Done(done),
                Some((mut same, rest, Poll::Pending)) => {
                    if same.polled_on() == PolledOn::Returning {
                        same.moves_to(PolledOn::Worker);
                        return Elsewhere::Back(same, rest);
                    }
                    (scope, work) = (same, rest);
                }
                None => return std::future::pending().await,
            }
            woken.0.notified().await;
        }
    }

    /// Polls a connection on one of the threads when it is its turn; `None` if the runtime is shutting down.
    pub(crate) fn poll_connection<T: Send + 'static>(
        &self,
        poll: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = Option<T>> + Send + 'static {
        self.run(&self.connections, poll)
    }

    /// Runs a function on one of the threads when there is a place; `None` if the runtime is shutting down.
    fn run<T: Send + 'static>(
        &self,
        places: &Arc<Semaphore>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = Option<T>> + Send + 'static {
        let (places, pool) = (places.clone(), self.pool.clone());
        async move {
            let place = places.acquire_owned().await;
            let work = move || {
                let _place = place;
                work()
            };
            match pool.run(work).await {
                Ok(done) => Some(done),
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => resume_unwind(panic),
                    Err(_) => None,
                },
            }
        }
    }

    /// Runs a self-contained computation: on another thread if `size` is large.
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

/// The result of polling a request on another thread.
enum Elsewhere<T> {
    Done(T),
    /// The request waits for something, and the work after that is small.
    Back(Scope, BoxFuture<'static, T>),
}

/// Interrupts the work when it is dropped, because the client has disconnected.
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

/// Declares that large work follows: the request moves to a thread where it does not delay other requests.
pub(crate) async fn large() {
    poll_fn(|cx| {
        if !scope::grow() {
            return Poll::Ready(());
        }
        // A combinator between here and the request may poll its parts only when they wake it.
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Declares that work on so many bytes follows, and moves the request if that is large.
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
    /// Starts counting.
    pub(crate) fn new() -> Pace {
        Pace { left: ROUND }
    }

    /// Counts work on so many bytes; returns whether the loop must await [`turn`].
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

/// Called by a loop after some work: if the loop has run long, it becomes large work, or yields to other large work.
pub(crate) async fn turn() {
    wanted().await;
    match scope::busy() {
        Some((PolledOn::Worker | PolledOn::Leaving, time)) if time >= ON_WORKER => large().await,
        Some((PolledOn::Thread | PolledOn::Returning, time)) if time >= ON_THREAD => {
            tokio::task::yield_now().await;
        }
        Some(_) => {}
        None => tokio::task::yield_now().await,
    }
}

#[cfg(test)]
mod tests;

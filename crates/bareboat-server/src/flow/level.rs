//! The state of a priority level: its queues behind a lock that is never held across an await.

use super::fair::Class;
use crate::request::info::RequestInfo;
use bareboat_api::Str;
use bareboat_api::kind::User;
use bareboat_flow::limits::Limits;
use bareboat_flow::{Arrival, Lane, LevelSpec, QueueSet, Refusal, Running};
use parking_lot::{Mutex, MutexGuard};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;
use tokio::sync::oneshot;

/// A clock that counts nanoseconds.
#[derive(Clone, Copy)]
pub(super) struct Clock(Instant);

impl Clock {
    pub(super) fn new() -> Clock {
        Clock(Instant::now())
    }

    /// Returns the nanoseconds since the clock was created, at least 1.
    pub(super) fn now(self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos())
            .unwrap_or(u64::MAX)
            .max(1)
    }
}

/// A priority level at work: its seats and the queues of its requests.
pub(super) struct Level {
    pub(super) name: Str,
    pub(super) exempt: bool,
    clock: Clock,
    nominal: AtomicU32,
    has_queues: AtomicBool,
    queues: Mutex<QueueSet<Waiter>>,
}

/// A request that waits in a queue.
pub(super) struct Waiter {
    wake: oneshot::Sender<Running>,
    pub(super) class: Arc<Class>,
    pub(super) user: Arc<User>,
    pub(super) info: Arc<RequestInfo>,
}

impl Waiter {
    pub(super) fn new(
        class: Arc<Class>,
        user: Arc<User>,
        info: Arc<RequestInfo>,
    ) -> (Waiter, oneshot::Receiver<Running>) {
        let (wake, woken) = oneshot::channel();
        let waiter = Waiter {
            wake,
            class,
            user,
            info,
        };
        (waiter, woken)
    }
}

/// Returns the initial number of seats of a level's queues. Exempt requests take seats only if they are large, because
/// those hold memory: a sixth of all seats, half of the number returned here.
fn seats(spec: &LevelSpec, limits: Limits, total: u32) -> u32 {
    match spec.exempt {
        true => total.div_ceil(3),
        false => limits.nominal,
    }
}

/// The place of a request in a level.
pub(super) enum Place<'a> {
    Seat(Running),
    /// A place in a queue, and how many wait there.
    Queue(Waiting<'a>, usize),
    Refused(Refusal),
}

impl Level {
    pub(super) fn new(spec: &LevelSpec, limits: Limits, total: u32, clock: Clock) -> Level {
        let seats = seats(spec, limits, total);
        Level {
            name: spec.name.clone(),
            exempt: spec.exempt,
            clock,
            nominal: AtomicU32::new(limits.nominal),
            has_queues: AtomicBool::new(spec.queuing.is_some()),
            queues: Mutex::new(QueueSet::new(spec.queuing, seats)),
        }
    }

    /// Applies a changed configuration. Waiting and running requests are not affected.
    pub(super) fn configure(&self, spec: &LevelSpec, limits: Limits, total: u32) {
        self.nominal.store(limits.nominal, Ordering::Relaxed);
        self.has_queues
            .store(spec.queuing.is_some(), Ordering::Relaxed);
        let mut queues = self.queues.lock();
        queues.configure(spec.queuing);
        queues.set_limit(seats(spec, limits, total));
        self.dispatch(queues);
    }

    pub(super) fn now(&self) -> u64 {
        self.clock.now()
    }

    pub(super) fn nominal(&self) -> u32 {
        self.nominal.load(Ordering::Relaxed)
    }

    pub(super) fn has_queues(&self) -> bool {
        self.has_queues.load(Ordering::Relaxed)
    }

    pub(super) fn set_limit(&self, limit: u32) {
        let mut queues = self.queues.lock();
        if queues.limit() != limit {
            queues.set_limit(limit);
            self.dispatch(queues);
        }
    }

    /// Calls `look` with the queues.
    pub(super) fn look<R>(&self, look: impl FnOnce(&mut QueueSet<Waiter>) -> R) -> R {
        look(&mut self.queues.lock())
    }

    pub(super) fn arrive(
        &self,
        flow: u64,
        seats: u32,
        lane: Lane,
        waiter: impl FnOnce() -> (Waiter, oneshot::Receiver<Running>),
    ) -> Place<'_> {
        let mut woken = None;
        let payload = || {
            let (waiter, receiver) = waiter();
            woken = Some(receiver);
            waiter
        };
        let now = self.now();
        let arrival = self.queues.lock().arrive(now, flow, seats, lane, payload);
        match (arrival, woken) {
            (Arrival::Running(running), _) => Place::Seat(running),
            (Arrival::Queued { id, length }, Some(woken)) => {
                let waiting = Waiting {
                    level: self,
                    id,
                    woken,
                    done: false,
                };
                Place::Queue(waiting, length)
            }
            (Arrival::Queued { .. }, None) => Place::Refused(Refusal::QueueFull),
            (Arrival::Refused(refusal), _) => Place::Refused(refusal),
        }
    }

    pub(super) fn finish(&self, now: u64, running: Running, caused: u64) {
        let mut queues = self.queues.lock();
        queues.finish(now, running, caused);
        self.dispatch(queues);
    }

    /// Counts a running request as large, if there is room.
    pub(super) fn grow(&self, running: &mut Running) -> bool {
        self.queues.lock().grow(running)
    }

    pub(super) fn charge(&self, flow: u64, work: u64) {
        if !self.exempt {
            self.queues.lock().charge(flow, work);
        }
    }

    /// Starts requests that may run. They are woken while the lock is held, so that a request that gives up at the same
    /// time finds itself either in its queue or woken.
    fn dispatch(&self, mut queues: MutexGuard<'_, QueueSet<Waiter>>) {
        if queues.counts().1 == 0 {
            return;
        }
        let now = self.now();
        while let Some((waiter, running, _)) = queues.dispatch(now) {
            if let Err(running) = waiter.wake.send(running) {
                queues.finish(now, running, 0);
            }
        }
    }
}

/// Waits for a seat. Dropping it leaves the queue.
pub(super) struct Waiting<'a> {
    level: &'a Level,
    id: u64,
    woken: oneshot::Receiver<Running>,
    done: bool,
}

impl Future for Waiting<'_> {
    type Output = Running;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Running> {
        match Pin::new(&mut self.woken).poll(cx) {
            Poll::Ready(Ok(running)) => {
                self.done = true;
                Poll::Ready(running)
            }
            // The sender is dropped only together with the queues, which this borrows.
            Poll::Ready(Err(_)) | Poll::Pending => Poll::Pending,
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let mut queues = self.level.queues.lock();
        if queues.cancel(self.id).is_none()
            && let Ok(running) = self.woken.try_recv()
        {
            queues.finish(self.level.now(), running, 0);
        }
        self.level.dispatch(queues);
    }
}

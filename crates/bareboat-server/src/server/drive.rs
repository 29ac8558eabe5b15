//! Polls a connection until it ends: on a worker of the runtime, or on the threads for large work while it moves many
//! bytes.
//!
//! Encryption and copies to the socket take processor time in proportion to the bytes. On the workers, the answers of
//! one client with many connections would delay everybody else's requests.

use super::state::Ending;
use crate::bell::Bell;
use crate::connections::{Close, Line};
use crate::work::Threads;
use bareboat_api::kind::BoxFuture;
use futures_util::FutureExt as _;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker, ready};

/// A connection that was polled on another thread, and the result.
type Elsewhere<C> = BoxFuture<'static, Option<(Pin<Box<C>>, Poll<<C as Future>::Output>)>>;

/// Serves a connection until it ends or is closed. Once the server or the connection is to end, it completes running
/// requests and accepts no more.
pub(super) async fn until_done<C>(
    connection: Pin<Box<C>>,
    finish: impl Fn(Pin<&mut C>),
    ending: Ending,
    line: &Arc<Line>,
    threads: &Threads,
) -> Option<C::Output>
where
    C: Future + Send + 'static,
    C::Output: Send + 'static,
{
    let mut ending = pin!(ending.begun().fuse());
    let bell = Bell::new();
    let mut here = Some(connection);
    let mut elsewhere: Option<Elsewhere<C>> = None;
    // The same one for every poll elsewhere: futures inside the connection compare wakers.
    let mut woken = Arc::new(Woken::new(Waker::noop()));
    poll_fn(move |cx| {
        loop {
            let mut is_due = true;
            if let Some(polling) = &mut elsewhere {
                let Some((connection, polled)) = ready!(polling.as_mut().poll(cx)) else {
                    return Poll::Ready(None);
                };
                if let Poll::Ready(done) = polled {
                    return Poll::Ready(Some(done));
                }
                is_due = woken.has_been.load(Ordering::Acquire);
                here = Some(connection);
                elsewhere = None;
            }
            let Some(connection) = &mut here else {
                return Poll::Ready(None);
            };
            if let Some(waker) = bell.rung(cx) {
                let cx = &mut Context::from_waker(&waker);
                let close = line.poll_close(cx);
                if close == Poll::Ready(Close::Now) {
                    return Poll::Ready(None);
                }
                if ending.as_mut().poll(cx).is_ready() || close.is_ready() {
                    finish(connection.as_mut());
                }
            } else if !is_due {
                // Nothing has happened since the poll elsewhere. A close meanwhile would have rung the bell.
                return Poll::Pending;
            }
            if !line.moves_much() {
                line.begin_poll_on_worker();
                return connection.as_mut().poll(cx).map(Some);
            }
            if let Some(connection) = here.take() {
                if !woken.task.will_wake(cx.waker()) {
                    woken = Arc::new(Woken::new(cx.waker()));
                }
                woken.has_been.store(false, Ordering::Release);
                let polling = poll_elsewhere(connection, line.clone(), threads, woken.clone());
                elsewhere = Some(polling);
            }
        }
    })
    .await
}

/// Polls a connection once on a thread for large work.
fn poll_elsewhere<C>(
    mut connection: Pin<Box<C>>,
    line: Arc<Line>,
    threads: &Threads,
    woken: Arc<Woken>,
) -> Elsewhere<C>
where
    C: Future + Send + 'static,
    C::Output: Send + 'static,
{
    let waker = Waker::from(woken);
    Box::pin(threads.poll_connection(move || {
        line.begin_poll_on_thread();
        let polled = connection.as_mut().poll(&mut Context::from_waker(&waker));
        (connection, polled)
    }))
}

/// Wakes the task of a connection, and records that the connection asked for it.
struct Woken {
    has_been: AtomicBool,
    task: Waker,
}

impl Woken {
    fn new(task: &Waker) -> Woken {
        Woken {
            has_been: AtomicBool::new(false),
            task: task.clone(),
        }
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.has_been.store(true, Ordering::Release);
        self.task.wake_by_ref();
    }
}

#[cfg(test)]
mod tests;

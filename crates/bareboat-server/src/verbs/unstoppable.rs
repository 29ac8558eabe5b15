//! Commits: work that goes on when the request it belongs to has ended.
//!
//! A write can be given up until it is committed. From then on it happens, so everything that belongs to it is seen
//! through: what is held for it is kept, and a second commit that completes the first is made. As long as its client
//! waits, this is a part of the task of its connection, which costs no other task and no switch between them. When
//! the client leaves, or the deadline passes, the rest of it becomes a task of its own.

use bareboat_api::interrupt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::runtime::Handle;

/// Work that is done to its end even if this is dropped.
pub(super) struct Unstoppable<T: Send + 'static> {
    /// Nothing when it is done, or while it is being polled: work that panics is not taken up again.
    rest: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
}

impl<T: Send + 'static> Unstoppable<T> {
    /// Begins when it is first polled.
    pub(super) fn new(work: impl Future<Output = T> + Send + 'static) -> Unstoppable<T> {
        Unstoppable {
            rest: Some(Box::pin(work)),
        }
    }
}

impl<T: Send + 'static> Future for Unstoppable<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Some(mut work) = self.rest.take() else {
            return Poll::Pending;
        };
        let polled = interrupt::shielded(|| work.as_mut().poll(context));
        if polled.is_pending() {
            self.rest = Some(work);
        }
        polled
    }
}

impl<T: Send + 'static> Drop for Unstoppable<T> {
    fn drop(&mut self) {
        if let (Some(work), Ok(runtime)) = (self.rest.take(), Handle::try_current()) {
            runtime.spawn(work);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn work_goes_on_when_nobody_waits() {
        let (begin, begun) = oneshot::channel::<u32>();
        let (end, ended) = oneshot::channel();
        let mut work = Unstoppable::new(async move {
            let _ = end.send(begun.await);
        });
        assert!((&mut work).now_or_never().is_none());
        drop(work);
        begin.send(7).unwrap();
        assert_eq!(ended.await.unwrap(), Ok(7));
    }

    #[tokio::test]
    async fn work_that_panics_is_not_taken_up_again() {
        let (held, gone) = oneshot::channel::<()>();
        let work = Unstoppable::new(async move {
            let _held = held;
            tokio::task::yield_now().await;
            panic!("on purpose");
        });
        let outcome = std::panic::AssertUnwindSafe(work).catch_unwind().await;
        assert!(outcome.is_err());
        assert!(gone.await.is_err(), "what it held is free");
    }
}

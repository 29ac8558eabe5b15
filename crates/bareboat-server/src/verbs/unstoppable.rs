//! Work that is completed even if its request has ended: commits.
//!
//! A write can be abandoned until it is committed. From then on it is completed: its reservations are kept, and a
//! second commit that completes the first is made. While the client waits, the work runs in the task of its connection,
//! without another task or task switches. When the client disconnects, or the deadline passes, the rest of the work
//! becomes its own task.

use bareboat_api::interrupt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::runtime::Handle;

/// Work that is completed even if this is dropped.
pub(super) struct Unstoppable<T: Send + 'static> {
    /// `None` when the work is done or is being polled: work that panicked is not resumed.
    rest: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
}

impl<T: Send + 'static> Unstoppable<T> {
    /// Starts when it is first polled.
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
    async fn work_continues_after_its_future_is_dropped() {
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
    async fn work_that_panicked_is_not_resumed() {
        let (held, gone) = oneshot::channel::<()>();
        let work = Unstoppable::new(async move {
            let _held = held;
            tokio::task::yield_now().await;
            panic!("on purpose");
        });
        let outcome = std::panic::AssertUnwindSafe(work).catch_unwind().await;
        assert!(outcome.is_err());
        assert!(gone.await.is_err(), "its values are dropped");
    }
}

//! Work that goes on when nobody waits for it any longer.
//!
//! A client that hangs up must not leave half of a write done. As long as it waits, its write is a part of the task of
//! its connection, which costs no other task and no switch between them; only when it leaves, the rest of the work
//! becomes a task of its own.

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
        let polled = work.as_mut().poll(context);
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

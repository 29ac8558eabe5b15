//! What the code of a request can find out about the request it is part of, wherever it is being polled.

use crate::flow::Seat;
use bareboat_api::interrupt;
use std::cell::RefCell;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

thread_local! {
    static CURRENT: RefCell<Option<Scope>> = const { RefCell::new(None) };
}

/// Where a request is polled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// On a worker of the runtime, which has others to serve.
    Worker,
    /// On a worker, and about to leave it.
    Leaving,
    /// On a thread for large work.
    Thread,
    /// On such a thread, and about to go back to a worker when it has to wait.
    Returning,
}

/// A request, as its own code sees it.
pub(super) struct Scope {
    seat: Option<Arc<Seat>>,
    place: Place,
    /// Since when it has been busy, if anybody asked.
    busy: Option<Instant>,
}

impl Scope {
    pub(super) fn new(seat: Option<Arc<Seat>>) -> Scope {
        Scope {
            seat,
            place: Place::Worker,
            busy: None,
        }
    }

    pub(super) fn moves_to(&mut self, place: Place) {
        self.place = place;
    }

    pub(super) fn place(&self) -> Place {
        self.place
    }

    /// Runs a part of the request.
    pub(super) fn enter<T>(&mut self, part: impl FnOnce() -> T) -> T {
        /// Puts everything back, also when the part panics.
        struct Inside<'a> {
            own: &'a mut Scope,
            outer: Option<Scope>,
        }

        impl Drop for Inside<'_> {
            fn drop(&mut self) {
                if let Some(own) = CURRENT.replace(self.outer.take()) {
                    *self.own = own;
                }
            }
        }

        let own = Scope {
            seat: self.seat.take(),
            place: self.place,
            busy: None,
        };
        let _inside = Inside {
            outer: CURRENT.replace(Some(own)),
            own: self,
        };
        part()
    }
}

/// Asks to leave the worker; false for a request that need not or cannot.
pub(super) fn grow() -> bool {
    CURRENT.with_borrow_mut(|current| {
        let Some(scope) = current else { return false };
        let on_worker = matches!(scope.place, Place::Worker | Place::Leaving);
        scope.place = match on_worker {
            true => Place::Leaving,
            false => Place::Thread,
        };
        on_worker
    })
}

/// Where the current request is polled, and for how long it has been busy since it was first asked.
pub(super) fn busy() -> Option<(Place, Duration)> {
    CURRENT.with_borrow_mut(|current| {
        let scope = current.as_mut()?;
        let since = *scope.busy.get_or_insert_with(Instant::now);
        Some((scope.place, since.elapsed()))
    })
}

/// What follows the next wait is small: the request goes back to a worker.
pub(crate) fn small() {
    CURRENT.with_borrow_mut(|current| {
        if let Some(scope) = current
            && scope.place == Place::Thread
        {
            scope.place = Place::Returning;
        }
    });
}

/// The seat of the current request, if it has one.
pub(crate) fn seat() -> Option<Arc<Seat>> {
    CURRENT.with_borrow(|current| current.as_ref()?.seat.clone())
}

/// Goes on only if the result of the current work is still wanted. To be awaited before anything becomes durable: work
/// that was interrupted may have skipped some of its checks.
pub(crate) async fn wanted() {
    std::future::poll_fn(|_| match interrupt::requested() {
        true => Poll::Pending,
        false => Poll::Ready(()),
    })
    .await;
}

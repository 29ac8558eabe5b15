//! State of the current request for the code that runs it, on whichever thread it is polled.

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
pub(super) enum PolledOn {
    /// On a worker of the runtime, which also runs other requests.
    Worker,
    /// On a worker, and about to leave it.
    Leaving,
    /// On a thread for large work.
    Thread,
    /// On such a thread, and about to return to a worker at the next wait.
    Returning,
}

/// The state of a request.
pub(super) struct Scope {
    seat: Option<Arc<Seat>>,
    /// The audit ID of the request, if it has one.
    audit_id: Option<Arc<str>>,
    polled_on: PolledOn,
    /// When it became busy; set by the first query.
    busy: Option<Instant>,
}

impl Scope {
    pub(super) fn new(seat: Option<Arc<Seat>>, audit_id: Option<Arc<str>>) -> Scope {
        Scope {
            seat,
            audit_id,
            polled_on: PolledOn::Worker,
            busy: None,
        }
    }

    pub(super) fn moves_to(&mut self, polled_on: PolledOn) {
        self.polled_on = polled_on;
    }

    pub(super) fn polled_on(&self) -> PolledOn {
        self.polled_on
    }

    /// Runs a part of the request.
    pub(super) fn enter<T>(&mut self, part: impl FnOnce() -> T) -> T {
        /// Restores the previous scope, also after a panic.
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
            audit_id: self.audit_id.take(),
            polled_on: self.polled_on,
            busy: None,
        };
        let _inside = Inside {
            outer: CURRENT.replace(Some(own)),
            own: self,
        };
        part()
    }
}

/// Requests to leave the worker; false if the request need not or cannot.
pub(super) fn grow() -> bool {
    CURRENT.with_borrow_mut(|current| {
        let Some(scope) = current else { return false };
        let on_worker = matches!(scope.polled_on, PolledOn::Worker | PolledOn::Leaving);
        scope.polled_on = match on_worker {
            true => PolledOn::Leaving,
            false => PolledOn::Thread,
        };
        on_worker
    })
}

/// Returns where the current request is polled, and how long it has been busy since the first query.
pub(super) fn busy() -> Option<(PolledOn, Duration)> {
    CURRENT.with_borrow_mut(|current| {
        let scope = current.as_mut()?;
        let since = *scope.busy.get_or_insert_with(Instant::now);
        Some((scope.polled_on, since.elapsed()))
    })
}

/// Declares that the work after the next wait is small: the request returns to a worker.
pub(crate) fn small() {
    CURRENT.with_borrow_mut(|current| {
        if let Some(scope) = current
            && scope.polled_on == PolledOn::Thread
        {
            scope.polled_on = PolledOn::Returning;
        }
    });
}

/// Returns the concurrency seat of the current request, if it has one.
pub(crate) fn seat() -> Option<Arc<Seat>> {
    CURRENT.with_borrow(|current| current.as_ref()?.seat.clone())
}

/// Returns the audit ID of the current request, if it is known.
pub(crate) fn audit_id() -> Option<Arc<str>> {
    CURRENT.with_borrow(|current| current.as_ref()?.audit_id.clone())
}

/// Continues only if the result of the current work is still wanted. Await it before making anything durable:
/// interrupted work may have skipped some of its checks.
pub(crate) async fn wanted() {
    std::future::poll_fn(|_| match interrupt::requested() {
        true => Poll::Pending,
        false => Poll::Ready(()),
    })
    .await;
}

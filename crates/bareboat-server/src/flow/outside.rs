//! The parts of one request that wait for something outside this server. The seat is left when the first of them begins to wait, and
//! taken again when the last of them returns.

use super::Seat;
use bareboat_api::kind::BoxFuture;
use futures_util::FutureExt;
use futures_util::future::{Shared, WeakShared, select};
use parking_lot::Mutex;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::Notify;

/// The parts of one request.
#[derive(Default)]
pub(super) struct Parts {
    state: Mutex<State>,
    /// Wakes parts that wait for the seat when the request does not need it any more.
    unneeded: Notify,
}

#[derive(Default)]
struct State {
    /// How many parts wait for something outside this server.
    outside: usize,
    /// Whether the request needs no seat any more.
    done: bool,
    /// The wait for the seat. All parts share it, so that the request never waits for a second seat.
    retaking: Option<WeakShared<Retaking>>,
}

type Retaking = BoxFuture<'static, ()>;

impl State {
    fn needs_seat(&self) -> bool {
        self.outside == 0 && !self.done
    }
}

impl Parts {
    pub(super) fn are_done(&self) -> bool {
        self.state.lock().done
    }

    /// Leaves the seat for good.
    pub(super) fn end(&self, leave: impl FnOnce()) {
        let mut state = self.state.lock();
        state.done = true;
        leave();
        drop(state);
        self.unneeded.notify_waiters();
    }
}

impl Seat {
    /// Waits for something outside this server. The seat is free for other requests in the meantime. Parts of a request may wait side
    /// by side, or one inside another: the seat is taken again when the last of them returns.
    pub(crate) async fn away<T>(self: &Arc<Self>, answer: impl Future<Output = T>) -> T {
        let outside = Outside::of(self);
        let answer = answer.await;
        outside.back().await;
        answer
    }

    /// Returns the wait for the seat; `None` if the request has it or needs none.
    fn retaking(self: &Arc<Self>) -> Option<Shared<Retaking>> {
        let mut state = self.parts.state.lock();
        if !state.needs_seat() || self.is_held() {
            return None;
        }
        if let Some(same) = state.retaking.as_ref().and_then(WeakShared::upgrade) {
            return Some(same);
        }
        let seat = self.clone();
        let retaking: Retaking = Box::pin(async move {
            seat.take().await;
            seat.retaken();
        });
        let retaking = retaking.shared();
        state.retaking = retaking.downgrade();
        Some(retaking)
    }

    /// Keeps the seat that was just taken, unless the request does not need it any more. Parts go out and return under the same lock,
    /// so that none of them goes on with a seat that is given away.
    fn retaken(&self) {
        let mut state = self.parts.state.lock();
        state.retaking = None;
        if !state.needs_seat() {
            self.leave();
        }
    }
}

/// Counts one part of a request that waits outside this server. If the part is dropped early, the seat stays free, and the next part
/// that returns takes it.
struct Outside<'a>(&'a Arc<Seat>);

impl<'a> Outside<'a> {
    fn of(seat: &'a Arc<Seat>) -> Outside<'a> {
        let parts = &seat.parts;
        let mut state = parts.state.lock();
        state.outside += 1;
        if state.outside == 1 {
            seat.leave();
            drop(state);
            parts.unneeded.notify_waiters();
        }
        Outside(seat)
    }

    /// Waits until the request has its seat, or needs none because other parts are outside. A part never waits for another
    /// part, because the caller of that one may have stopped polling it.
    async fn back(self) {
        let seat = self.0;
        drop(self);
        loop {
            // It counts from here on, so that no change after the next line is missed.
            let unneeded = pin!(seat.parts.unneeded.notified());
            let Some(retaking) = seat.retaking() else {
                return;
            };
            select(retaking, unneeded).await;
        }
    }
}

impl Drop for Outside<'_> {
    fn drop(&mut self) {
        self.0.parts.state.lock().outside -= 1;
    }
}

//! The seat of one request: taken, left while the request waits, taken again, released at the end.

use super::memory::{DECODED, Share, UNIT};
use super::outside::Parts;
use super::plain::PlainSeat;
use super::{Budgets, Class, FairSeat, LargePlace, Visitor, later};
use bareboat_api::Status;
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::OwnedSemaphorePermit;

/// Counts a request as running, except while it waits for something outside this server.
pub(crate) struct Seat {
    kind: Kind,
    budgets: Arc<Budgets>,
    /// The memory of its decoded body.
    share: Mutex<Option<Share>>,
    /// The parts of the request, which may wait outside this server.
    pub(super) parts: Parts,
}

enum Kind {
    Plain(PlainSeat),
    Fair(FairSeat),
}

impl Seat {
    pub(super) fn plain(seat: PlainSeat, budgets: Arc<Budgets>) -> Seat {
        Seat {
            kind: Kind::Plain(seat),
            budgets,
            share: Mutex::default(),
            parts: Parts::default(),
        }
    }

    pub(super) fn fair(class: Arc<Class>, visitor: Visitor, budgets: Arc<Budgets>) -> Seat {
        Seat {
            kind: Kind::Fair(FairSeat::new(class, visitor)),
            budgets,
            share: Mutex::default(),
            parts: Parts::default(),
        }
    }

    /// Takes a seat for a new request.
    pub(super) async fn enter(&mut self) -> Result<(), Status> {
        match &mut self.kind {
            Kind::Plain(seat) => seat.take_now(),
            Kind::Fair(seat) => seat.enter().await,
        }
    }

    pub(super) fn is_held(&self) -> bool {
        match &self.kind {
            Kind::Plain(seat) => seat.is_held(),
            Kind::Fair(seat) => seat.is_held(),
        }
    }

    /// Gives it to the next request.
    pub(crate) fn leave(&self) {
        match &self.kind {
            Kind::Plain(seat) => seat.leave(),
            Kind::Fair(seat) => seat.leave(),
        }
    }

    /// Takes a seat again as soon as it is the request's turn, unless the request needs none any more.
    pub(crate) async fn take(&self) {
        if self.parts.are_done() {
            return;
        }
        match &self.kind {
            Kind::Plain(seat) => seat.take().await,
            Kind::Fair(seat) => seat.take().await,
        }
    }

    /// Takes a seat again after the body has arrived; refuses without queues.
    pub(super) async fn take_after_body(&self) -> Result<(), Status> {
        match &self.kind {
            Kind::Plain(seat) => seat.take_now(),
            Kind::Fair(seat) => seat.take_after_body().await,
        }
    }

    /// Continues as a large request, which holds a body of so many bytes.
    pub(super) async fn grow(&self, body: usize) -> Result<LargePlace, Status> {
        match &self.kind {
            Kind::Plain(seat) => seat.grow(),
            Kind::Fair(seat) => {
                if seat.grow_now() {
                    return Ok(LargePlace { _permit: None });
                }
                let size = u32::try_from(body).map_err(|_| later())?;
                let parked = self.budgets.parked.try_acquire_many(size);
                let _parked = parked.map_err(|_| seat.finds_no_room())?;
                seat.grow().await?;
                Ok(LargePlace { _permit: None })
            }
        }
    }

    /// Takes so much memory for a decoded body of `body` bytes. Waits without a seat until there is enough; without
    /// queues it refuses.
    pub(super) async fn decode(
        &self,
        memory: usize,
        body: usize,
    ) -> Result<OwnedSemaphorePermit, Status> {
        let units = memory.min(DECODED).div_ceil(UNIT);
        let units = u32::try_from(units).map_err(|_| later())?;
        let decoded = &self.budgets.decoded;
        if let Ok(permit) = decoded.clone().try_acquire_many_owned(units) {
            return Ok(permit);
        }
        let Kind::Fair(seat) = &self.kind else {
            return Err(later());
        };
        let size = u32::try_from(body).map_err(|_| later())?;
        let parked = self.budgets.parked.try_acquire_many(size);
        let _parked = parked.map_err(|_| seat.finds_no_room())?;
        self.leave();
        let waiting = decoded.clone().acquire_many_owned(units);
        let waited = tokio::time::timeout(seat.patience(), waiting).await;
        self.take().await;
        match waited {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(seat.waited_in_vain()),
        }
    }

    /// Returns the memory of its decoded body.
    pub(super) fn share(&self) -> MutexGuard<'_, Option<Share>> {
        self.share.lock()
    }

    /// Returns the limits on bytes of bodies.
    pub(super) fn budgets(&self) -> &Budgets {
        &self.budgets
    }

    /// Returns the answer to a request that there is no memory for.
    pub(super) fn without_memory(&self) -> Status {
        match &self.kind {
            Kind::Fair(seat) => seat.finds_no_room(),
            Kind::Plain(_) => later(),
        }
    }

    pub(super) fn woke(&self, watchers: impl FnOnce() -> usize) {
        if let Kind::Fair(seat) = &self.kind {
            seat.woke(watchers);
        }
    }

    /// Leaves for good. Further work of the request, such as sending the rest of a stream, is only charged.
    pub(crate) fn retire(&self) {
        self.parts.end(|| match &self.kind {
            Kind::Plain(seat) => seat.leave(),
            Kind::Fair(seat) => seat.retire(),
        });
    }

    /// Charges the flow of the request for work that was done without a seat since a moment.
    pub(crate) fn charge(&self, since: Instant) {
        if let Kind::Fair(seat) = &self.kind {
            seat.charge(u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX));
        }
    }
}

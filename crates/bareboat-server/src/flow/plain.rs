//! Flow control without priority and fairness: one limit for reads, one for writes, no queues.

use super::seat::Seat;
use super::{Budgets, LargePlace, later, reads};
use crate::request::info::RequestInfo;
use bareboat_api::Status;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A limit for reads and one for writes.
pub(super) struct Plain {
    pub(super) reading: Limit,
    pub(super) writing: Limit,
}

#[derive(Clone)]
pub(super) struct Limit {
    pub(super) seats: Arc<Semaphore>,
    /// Places for large requests.
    large: Arc<Semaphore>,
    total: usize,
}

impl Limit {
    fn new(total: usize) -> Limit {
        Limit {
            seats: Arc::new(Semaphore::new(total)),
            large: Arc::new(Semaphore::new(total.div_ceil(2))),
            total,
        }
    }
}

impl Plain {
    pub(super) fn new(reading: usize, writing: usize) -> Plain {
        Plain {
            reading: Limit::new(reading),
            writing: Limit::new(writing),
        }
    }

    pub(super) fn in_flight(&self) -> (usize, usize) {
        let held = |limit: &Limit| limit.total.saturating_sub(limit.seats.available_permits());
        (held(&self.reading), held(&self.writing))
    }

    pub(super) fn seat(&self, info: &RequestInfo, budgets: Arc<Budgets>) -> Seat {
        let limit = match reads(&info.verb) {
            true => &self.reading,
            false => &self.writing,
        };
        Seat::plain(
            PlainSeat {
                permit: Mutex::new(None),
                limit: limit.clone(),
            },
            budgets,
        )
    }
}

/// A seat of a plain limit.
pub(super) struct PlainSeat {
    permit: Mutex<Option<OwnedSemaphorePermit>>,
    limit: Limit,
}

impl PlainSeat {
    pub(super) fn is_held(&self) -> bool {
        self.permit.lock().is_some()
    }

    pub(super) fn leave(&self) {
        let permit = self.permit.lock().take();
        drop(permit);
    }

    /// Takes a seat if one is free.
    pub(super) fn take_now(&self) -> Result<(), Status> {
        let permit = self.limit.seats.clone().try_acquire_owned();
        *self.permit.lock() = Some(permit.map_err(|_| later())?);
        Ok(())
    }

    /// Takes a seat again as soon as one is free, in turn.
    pub(super) async fn take(&self) {
        if self.is_held() {
            return;
        }
        let permit = self.limit.seats.clone().acquire_owned().await;
        *self.permit.lock() = permit.ok();
    }

    pub(super) fn grow(&self) -> Result<LargePlace, Status> {
        let place = self.limit.large.clone().try_acquire_owned();
        Ok(LargePlace {
            _permit: Some(place.map_err(|_| later())?),
        })
    }
}

//! Flow control: how many requests may be under way at once, and how much of bodies may be waited for.
//!
//! Large requests wait in line for a thread, so that they may take half of the seats only: the others are for small ones.
//!
//! A seat is for work. A request that waits for its body, or for another server, leaves its seat to others, so that any
//! number of clients or servers that stall do not keep others from working.

use crate::reply::{Response, plain_text};
use crate::request::body::RequestBody;
use crate::request::info::RequestInfo;
use crate::work;
use bareboat_api::Status;
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many bytes of bodies that are not whole yet may be kept.
const ARRIVING: usize = 256 << 20;
/// What clients are told that come at a bad time.
const LATER: &str = "Too many requests, please try again later.";

/// Limits on requests under way; long-running ones do not count.
pub(crate) struct Flow {
    reading: Arc<Semaphore>,
    writing: Arc<Semaphore>,
    large_reading: Arc<Semaphore>,
    large_writing: Arc<Semaphore>,
    arriving: Arc<Semaphore>,
    /// How many seats there are for reads and for writes.
    seats: (usize, usize),
}

impl Flow {
    /// Limits for reads and for writes.
    pub(crate) fn new(reading: usize, writing: usize) -> Flow {
        let half = |seats: usize| Arc::new(Semaphore::new(seats.div_ceil(2)));
        Flow {
            reading: Arc::new(Semaphore::new(reading)),
            writing: Arc::new(Semaphore::new(writing)),
            large_reading: half(reading),
            large_writing: half(writing),
            arriving: Arc::new(Semaphore::new(ARRIVING)),
            seats: (reading, writing),
        }
    }

    /// How many seats reads and writes hold.
    pub(crate) fn in_flight(&self) -> (usize, usize) {
        let held =
            |seats: usize, limit: &Semaphore| seats.saturating_sub(limit.available_permits());
        (
            held(self.seats.0, &self.reading),
            held(self.seats.1, &self.writing),
        )
    }

    /// Gives a request a seat, or the answer that sends it away.
    pub(crate) fn enter(&self, info: &RequestInfo) -> Result<Arc<Seat>, Box<Response>> {
        let reads = matches!(info.verb.as_str(), "get" | "list" | "head" | "options");
        let (limit, large) = match reads {
            true => (&self.reading, &self.large_reading),
            false => (&self.writing, &self.large_writing),
        };
        match limit.clone().try_acquire_owned() {
            Ok(permit) => Ok(Arc::new(Seat {
                permit: Mutex::new(Some(permit)),
                limit: limit.clone(),
                large: large.clone(),
                arriving: self.arriving.clone(),
            })),
            Err(_) => {
                let mut response = plain_text(StatusCode::TOO_MANY_REQUESTS, format!("{LATER}\n"));
                response
                    .headers_mut()
                    .insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
                Err(Box::new(response))
            }
        }
    }
}

/// Counts a request among those under way, except while it waits for something outside this server.
pub(crate) struct Seat {
    permit: Mutex<Option<OwnedSemaphorePermit>>,
    limit: Arc<Semaphore>,
    /// Places for large requests.
    large: Arc<Semaphore>,
    arriving: Arc<Semaphore>,
}

impl Seat {
    /// Gives it to the next request.
    fn leave(&self) {
        let permit = self.permit.lock().take();
        drop(permit);
    }

    /// Takes a seat again if one is free.
    fn take_now(&self) -> Result<(), Status> {
        let permit = self.limit.clone().try_acquire_owned();
        *self.permit.lock() = Some(permit.map_err(|_| later())?);
        Ok(())
    }

    /// Takes a seat again as soon as one is free, in turn.
    async fn take(&self) {
        if self.permit.lock().is_some() {
            return;
        }
        let permit = self.limit.clone().acquire_owned().await;
        *self.permit.lock() = permit.ok();
    }
}

fn later() -> Status {
    Status::too_many_requests(LATER, 1)
}

/// A place among the large requests, for the current one; refused when there are too many. To be taken while a request can
/// still be refused, and held until it is done.
pub(crate) fn large_place() -> Result<Option<OwnedSemaphorePermit>, Status> {
    let Some(seat) = work::seat() else {
        return Ok(None);
    };
    let place = seat.large.clone().try_acquire_owned();
    Ok(Some(place.map_err(|_| later())?))
}

/// Waits for another server. The seat of the request that waits is free for others in the meantime.
pub(crate) async fn away<T>(answer: impl Future<Output = T>) -> T {
    let Some(seat) = work::seat() else {
        return answer.await;
    };
    seat.leave();
    let answer = answer.await;
    seat.take().await;
    answer
}

/// A body that was not read yet, and the seat of its request if it counts.
pub(crate) struct Unread {
    body: RequestBody,
    seat: Option<Arc<Seat>>,
}

impl Unread {
    pub(crate) fn new(body: RequestBody, seat: Option<Arc<Seat>>) -> Unread {
        Unread { body, seat }
    }

    /// The body for somebody who passes it on; the seat is free from here on.
    pub(crate) fn into_stream(self) -> RequestBody {
        self.body
    }

    /// The seat for a request without a body.
    pub(crate) fn into_seat(self) -> Option<Arc<Seat>> {
        self.seat
    }

    /// Reads all of it; what was waited for is carried out on the seat that comes with it.
    pub(crate) async fn read(self) -> Result<(Bytes, Option<Arc<Seat>>), Status> {
        let Some(seat) = self.seat else {
            return Ok((self.body.read().await?, None));
        };
        seat.leave();
        let mut kept: Option<OwnedSemaphorePermit> = None;
        let may_keep = |size: usize| {
            let size = u32::try_from(size).map_err(|_| later())?;
            let more = seat.arriving.clone().try_acquire_many_owned(size);
            let more = more.map_err(|_| later())?;
            match &mut kept {
                Some(kept) => kept.merge(more),
                None => kept = Some(more),
            }
            Ok(())
        };
        let bytes = self.body.read_if(may_keep).await?;
        seat.take_now()?;
        drop(kept);
        Ok((bytes, Some(seat)))
    }
}

#[cfg(test)]
mod tests;

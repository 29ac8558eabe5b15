//! Flow control: how many requests may be under way at once, and how much of bodies may be waited for.
//!
//! A seat is for work. While a client takes its time sending a body, its seat is somebody else's, so that any number of
//! clients that stall keep nobody from writing.

use crate::reply::{Response, plain_text};
use crate::request::body::RequestBody;
use crate::request::info::RequestInfo;
use bareboat_api::Status;
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
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
    arriving: Arc<Semaphore>,
}

impl Flow {
    /// Limits for reads and for writes.
    pub(crate) fn new(reading: usize, writing: usize) -> Flow {
        Flow {
            reading: Arc::new(Semaphore::new(reading)),
            writing: Arc::new(Semaphore::new(writing)),
            arriving: Arc::new(Semaphore::new(ARRIVING)),
        }
    }

    /// Gives a request a seat, or the answer that sends it away.
    pub(crate) fn enter(&self, info: &RequestInfo) -> Result<Seat, Box<Response>> {
        let reads = matches!(info.verb.as_str(), "get" | "list" | "head" | "options");
        let limit = if reads { &self.reading } else { &self.writing };
        match limit.clone().try_acquire_owned() {
            Ok(permit) => Ok(Seat(Some(Taken {
                permit,
                limit: limit.clone(),
                arriving: self.arriving.clone(),
            }))),
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

/// Counts a request among those under way while it is held.
pub(crate) struct Seat(Option<Taken>);

struct Taken {
    permit: OwnedSemaphorePermit,
    limit: Arc<Semaphore>,
    arriving: Arc<Semaphore>,
}

impl Seat {
    /// For requests that do not count.
    pub(crate) fn uncounted() -> Seat {
        Seat(None)
    }
}

/// A body that was not read yet, and the seat of its request.
pub(crate) struct Unread {
    body: RequestBody,
    seat: Seat,
}

impl Unread {
    pub(crate) fn new(body: RequestBody, seat: Seat) -> Unread {
        Unread { body, seat }
    }

    /// The body for somebody who passes it on; the seat is free from here on.
    pub(crate) fn into_stream(self) -> RequestBody {
        self.body
    }

    /// Reads all of it; what was waited for is carried out on the seat that comes with it.
    pub(crate) async fn read(self) -> Result<(Bytes, Seat), Status> {
        let Seat(Some(taken)) = self.seat else {
            return Ok((self.body.read().await?, Seat::uncounted()));
        };
        let Taken {
            permit,
            limit,
            arriving,
        } = taken;
        drop(permit);
        let later = || Status::too_many_requests(LATER, 1);
        let mut kept: Option<OwnedSemaphorePermit> = None;
        let may_keep = |size: usize| {
            let size = u32::try_from(size).map_err(|_| later())?;
            let more = arriving.clone().try_acquire_many_owned(size);
            let more = more.map_err(|_| later())?;
            match &mut kept {
                Some(kept) => kept.merge(more),
                None => kept = Some(more),
            }
            Ok(())
        };
        let bytes = self.body.read_if(may_keep).await?;
        let permit = limit.clone().try_acquire_owned().map_err(|_| later())?;
        drop(kept);
        let seat = Seat(Some(Taken {
            permit,
            limit,
            arriving,
        }));
        Ok((bytes, seat))
    }
}

#[cfg(test)]
mod tests;

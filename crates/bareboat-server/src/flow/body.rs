//! Unread request bodies, and the seats of their requests.

use super::later;
use super::seat::Seat;
use crate::request::body::RequestBody;
use bareboat_api::Status;
use bytes::Bytes;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;

/// An unread body, and the seat of its request if it counts.
pub(crate) struct Unread {
    body: RequestBody,
    seat: Option<Arc<Seat>>,
}

impl Unread {
    pub(crate) fn new(body: RequestBody, seat: Option<Arc<Seat>>) -> Unread {
        Unread { body, seat }
    }

    /// Returns the body of a request that is proxied; the seat is released.
    pub(crate) fn into_stream(self) -> RequestBody {
        self.body
    }

    /// Returns the seat of a request without a body.
    pub(crate) fn into_seat(self) -> Option<Arc<Seat>> {
        self.seat
    }

    /// Reads the whole body. The seat is free for other requests until the body has arrived.
    pub(crate) async fn read(self) -> Result<(Bytes, Option<Arc<Seat>>), Status> {
        let Some(seat) = self.seat else {
            return Ok((self.body.read().await?, None));
        };
        seat.leave();
        let mut kept: Option<OwnedSemaphorePermit> = None;
        let may_keep = |size: usize| {
            let size = u32::try_from(size).map_err(|_| later())?;
            let more = seat.budgets().arriving.clone().try_acquire_many_owned(size);
            let more = more.map_err(|_| later())?;
            match &mut kept {
                Some(kept) => kept.merge(more),
                None => kept = Some(more),
            }
            Ok(())
        };
        let bytes = self.body.read_if(may_keep).await?;
        seat.take_after_body().await?;
        drop(kept);
        Ok((bytes, Some(seat)))
    }

    /// Reads the whole body of a request that another server may answer. The request may give its seat up while it waits, so its body
    /// counts apart; without room for it the request is refused.
    pub(crate) async fn read_to_pass_on(self) -> Result<Buffered, Status> {
        let (bytes, seat) = self.read().await?;
        let room = match &seat {
            Some(seat) => {
                let size = u32::try_from(bytes.len()).map_err(|_| later())?;
                let room = seat.budgets().passed_on.clone();
                let room = room.try_acquire_many_owned(size);
                Some(room.map_err(|_| seat.without_memory())?)
            }
            None => None,
        };
        Ok(Buffered {
            bytes,
            seat,
            room: Room { _held: room },
        })
    }
}

/// A whole body that another server may get.
pub(crate) struct Buffered {
    pub(crate) bytes: Bytes,
    pub(crate) seat: Option<Arc<Seat>>,
    /// Hold this until the request is answered.
    pub(crate) room: Room,
}

/// Counts the bytes of a body until it is dropped.
#[must_use]
pub(crate) struct Room {
    _held: Option<OwnedSemaphorePermit>,
}

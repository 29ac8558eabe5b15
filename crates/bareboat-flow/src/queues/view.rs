//! Snapshots of queues, for debugging tables.

use super::{LANES, QueueSet};

/// A snapshot of one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueView {
    /// The number of requests that wait.
    pub waiting: usize,
    /// The number of requests that run.
    pub running: u32,
    /// The seats that running requests use.
    pub seats: u32,
    /// The virtual time at which the next request starts, in seat-nanoseconds.
    pub next_start: u64,
    /// The seats that waiting requests want.
    pub waiting_seats: u32,
}

/// A request that waits in a queue.
#[derive(Clone, Copy, Debug)]
pub struct WaitingView<'a, T> {
    /// The index of its queue.
    pub queue: usize,
    /// The place of the request in the queue.
    pub place: usize,
    /// The number of seats that the request needs.
    pub seats: u32,
    /// When the request arrived, in nanoseconds of the caller's clock.
    pub arrived: u64,
    /// The value that the caller enqueued with the request, to wake it.
    pub payload: &'a T,
}

impl<T> QueueSet<T> {
    /// Returns snapshots of all queues, in order.
    pub fn queues(&self) -> impl Iterator<Item = QueueView> {
        self.queues.iter().map(|queue| QueueView {
            waiting: queue.waiting(),
            running: queue.running,
            seats: queue.running_seats,
            next_start: queue.spent.max(self.virtual_time),
            waiting_seats: queue.lanes.iter().flatten().map(|one| one.seats).sum(),
        })
    }

    /// Returns all requests that wait, queue by queue, in the order in which they are served.
    pub fn waiting(&self) -> impl Iterator<Item = WaitingView<'_, T>> {
        self.queues.iter().enumerate().flat_map(|(queue, queued)| {
            let lanes = LANES
                .into_iter()
                .flat_map(|lane| &queued.lanes[lane as usize]);
            lanes.enumerate().map(move |(place, waiting)| WaitingView {
                queue,
                place,
                seats: waiting.seats,
                arrived: waiting.arrived,
                payload: &waiting.payload,
            })
        })
    }
}

//! The queues of one priority level: which requests run, wait or are refused.
//!
//! Fairness is start-time fair queueing in seat-nanoseconds. Each queue has a virtual time at which its next request
//! starts; the queue with the earliest one is served first. A request is charged a little when it starts and the rest of
//! its seat-time when it ends; what still runs counts when queues are compared. The virtual time of the level is never
//! behind that of the queue that was served last, so that an idle flow saves up nothing. A queue is never charged for more
//! than a second of the whole level, so that a flow that was busy is served again soon.
//!
//! Every flow has a few of the queues ([`deal`](crate::deal)). The caller decides how long requests may wait.

mod view;

use crate::level::Queuing;
use crate::shuffle::deal;
use std::collections::VecDeque;
pub use view::{QueueView, WaitingView};

/// The charge for each seat when a request starts, in nanoseconds.
const START: u64 = 2_000_000;
/// How far behind others a queue may fall, in nanoseconds of the whole level.
const MOST_DEBT: u64 = 1_000_000_000;
/// How many large requests may wait in one queue: each holds its body.
const MOST_LARGE: usize = 8;

/// The class of a request within its queue; it decides what is served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// It ran before, waited for something else, and continues. It is served before others of its queue and never refused.
    Returning,
    /// It is large: it runs only while large requests use fewer than half of the seats.
    Large,
    /// The request is new and not large.
    New,
}

const LANES: [Lane; 3] = [Lane::Returning, Lane::Large, Lane::New];

/// A request that runs. It must be given back to [`QueueSet::finish`].
#[derive(Debug)]
#[must_use]
pub struct Running {
    queue: u32,
    generation: u32,
    seats: u32,
    large: bool,
    since: u64,
}

impl Running {
    /// Returns when the request started, in nanoseconds of the caller's clock.
    pub fn since(&self) -> u64 {
        self.since
    }

    /// Returns the number of seats that the request uses.
    pub fn seats(&self) -> u32 {
        self.seats
    }
}

/// The decision about a request that arrives: run, wait, or refuse.
#[derive(Debug)]
pub enum Arrival {
    /// The request has its seats and runs; give the value back to [`QueueSet::finish`].
    Running(Running),
    /// The request waits in a queue until [`QueueSet::dispatch`] starts it.
    Queued {
        /// The number of the waiting request; [`QueueSet::cancel`] needs it.
        id: u64,
        /// How many requests wait in its queue now.
        length: usize,
    },
    /// The request is refused at once; it neither runs nor waits.
    Refused(Refusal),
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The queues of its flow are full.
    QueueFull,
    /// No seat is free, and the level has no queues.
    NoSeat,
}

/// A request that waits.
#[derive(Debug)]
struct Waiting<T> {
    id: u64,
    flow: u64,
    seats: u32,
    lane: Lane,
    arrived: u64,
    payload: T,
}

#[derive(Debug)]
struct Queue<T> {
    lanes: [VecDeque<Waiting<T>>; 3],
    /// The virtual time at which its next request starts, without what still runs.
    spent: u64,
    running: u32,
    running_seats: u32,
    /// The sum over running requests of their seats times the moment they started.
    started: u128,
}

impl<T> Queue<T> {
    fn new() -> Queue<T> {
        Queue {
            lanes: [const { VecDeque::new() }; 3],
            spent: 0,
            running: 0,
            running_seats: 0,
            started: 0,
        }
    }

    fn lane(&mut self, lane: Lane) -> &mut VecDeque<Waiting<T>> {
        &mut self.lanes[lane as usize]
    }

    fn waiting(&self) -> usize {
        self.lanes.iter().map(VecDeque::len).sum()
    }

    /// The lane that is served next.
    fn next(&self, room_for_large: bool) -> Option<Lane> {
        LANES.into_iter().find(|lane| {
            (*lane != Lane::Large || room_for_large) && !self.lanes[*lane as usize].is_empty()
        })
    }

    /// Seat-nanoseconds that running requests have used beyond what they were charged.
    fn owes(&self, now: u64) -> u64 {
        let used = u128::from(self.running_seats) * u128::from(now);
        let owed = used.saturating_sub(self.started);
        u64::try_from(owed)
            .unwrap_or(u64::MAX)
            .saturating_sub(u64::from(self.running_seats) * START)
    }
}

/// The queues of one priority level. `T` is what wakes a request that waits.
#[derive(Debug)]
pub struct QueueSet<T> {
    queuing: Option<Queuing>,
    limit: u32,
    in_use: u32,
    running: u32,
    large: u32,
    /// The number of waiting requests that are not large.
    waiting: usize,
    waiting_large: usize,
    waiting_seats: u32,
    /// The most seats that were in use or waited for.
    high: u32,
    virtual_time: u64,
    queues: Vec<Queue<T>>,
    /// Increases whenever queues are assigned to flows anew.
    generation: u32,
    next_id: u64,
    /// The queue that was served last, for ties.
    last: usize,
}

impl<T> QueueSet<T> {
    /// Queues with so many seats; without queuing, requests that find no seat are refused.
    pub fn new(queuing: Option<Queuing>, limit: u32) -> QueueSet<T> {
        let mut set = QueueSet {
            queuing: None,
            limit,
            in_use: 0,
            running: 0,
            large: 0,
            waiting: 0,
            waiting_large: 0,
            waiting_seats: 0,
            high: 0,
            virtual_time: 0,
            queues: vec![Queue::new()],
            generation: 0,
            next_id: 0,
            last: 0,
        };
        set.configure(queuing);
        set
    }

    /// Changes the queues. Requests that wait keep waiting, in the queues that their flows have now.
    pub fn configure(&mut self, queuing: Option<Queuing>) {
        let count = |queuing: Option<Queuing>| queuing.map_or(1, |queuing| queuing.queues);
        let same = count(queuing) == count(self.queuing);
        self.queuing = queuing;
        if same {
            return;
        }
        let wanted = count(queuing) as usize;
        let old = std::mem::replace(
            &mut self.queues,
            std::iter::repeat_with(Queue::new).take(wanted).collect(),
        );
        self.generation = self.generation.wrapping_add(1);
        self.last = 0;
        let mut all: Vec<Waiting<T>> = old
            .into_iter()
            .flat_map(|queue| queue.lanes)
            .flatten()
            .collect();
        all.sort_by_key(|waiting| waiting.id);
        for waiting in all {
            let place = self.shortest(waiting.flow);
            self.queues[place].lane(waiting.lane).push_back(waiting);
        }
    }

    /// Changes the number of seats. [`QueueSet::dispatch`] may have something to do afterwards.
    pub fn set_limit(&mut self, limit: u32) {
        self.limit = limit;
    }

    /// Returns the number of seats of the level.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// Returns the number of seats in use.
    pub fn in_use(&self) -> u32 {
        self.in_use
    }

    /// Returns the numbers of running and of waiting requests.
    pub fn counts(&self) -> (u32, usize) {
        (self.running, self.waiting + self.waiting_large)
    }

    /// Returns the most seats that were in use or waited for since the last call, and the present number.
    pub fn take_demand(&mut self) -> (u32, u32) {
        let now = self.in_use + self.waiting_seats;
        (std::mem::replace(&mut self.high, now).max(now), now)
    }

    fn may_run(&self, seats: u32) -> bool {
        self.in_use + seats <= self.limit || self.in_use == 0
    }

    fn has_room_for_large(&self) -> bool {
        self.large < self.limit.div_ceil(2).max(1)
    }

    fn first_card(&self, flow: u64) -> usize {
        (flow % self.queues.len() as u64) as usize
    }

    /// Returns the queue of a flow with the fewest seats in use and waited for.
    fn shortest(&self, flow: u64) -> usize {
        let Some(queuing) = self.queuing else {
            return 0;
        };
        let seats = |queue: &Queue<T>| {
            let waiting = queue.lanes.iter().flatten().map(|waiting| waiting.seats);
            queue.running_seats + waiting.sum::<u32>()
        };
        deal(flow, queuing.queues, queuing.hand_size)
            .map(|card| card as usize)
            .min_by_key(|card| seats(&self.queues[*card]))
            .unwrap_or(0)
    }

    /// Adds a request of a flow, new or returning. `payload` is called only if the request has to wait.
    pub fn arrive(
        &mut self,
        now: u64,
        flow: u64,
        seats: u32,
        lane: Lane,
        payload: impl FnOnce() -> T,
    ) -> Arrival {
        let large = lane == Lane::Large;
        let overtakes = match large {
            true => self.waiting_large > 0,
            false => self.waiting > 0,
        };
        if !overtakes && self.may_run(seats) && (!large || self.has_room_for_large()) {
            let place = self.first_card(flow);
            self.high = self.high.max(self.in_use + seats + self.waiting_seats);
            return Arrival::Running(self.start(now, place, seats, large));
        }
        let place = match lane {
            Lane::New if self.queuing.is_none() => return Arrival::Refused(Refusal::NoSeat),
            Lane::New => self.shortest(flow),
            _ => self.first_card(flow),
        };
        let most = match lane {
            Lane::New => self
                .queuing
                .map_or(0, |queuing| queuing.length_limit as usize),
            Lane::Large => MOST_LARGE,
            Lane::Returning => usize::MAX,
        };
        let length = self.queues[place].lane(lane).len();
        if length >= most {
            return Arrival::Refused(Refusal::QueueFull);
        }
        let id = self.next_id;
        self.next_id += 1;
        self.queues[place].lane(lane).push_back(Waiting {
            id,
            flow,
            seats,
            lane,
            arrived: now,
            payload: payload(),
        });
        *self.count(lane) += 1;
        self.waiting_seats += seats;
        self.high = self.high.max(self.in_use + self.waiting_seats);
        Arrival::Queued {
            id,
            length: length + 1,
        }
    }

    fn count(&mut self, lane: Lane) -> &mut usize {
        match lane {
            Lane::Large => &mut self.waiting_large,
            _ => &mut self.waiting,
        }
    }

    fn start(&mut self, now: u64, place: usize, seats: u32, large: bool) -> Running {
        self.in_use += seats;
        self.running += 1;
        self.large += u32::from(large);
        let debt = u64::from(self.limit.max(1)) * MOST_DEBT;
        let queue = &mut self.queues[place];
        let most = self.virtual_time.saturating_add(debt);
        self.virtual_time = self.virtual_time.max(queue.spent.min(most));
        queue.spent = self.virtual_time + u64::from(seats) * START;
        queue.running += 1;
        queue.running_seats += seats;
        queue.started += u128::from(seats) * u128::from(now);
        Running {
            queue: place as u32,
            generation: self.generation,
            seats,
            large,
            since: now,
        }
    }

    /// Counts a running request as large, if there is room and no large request waits.
    pub fn grow(&mut self, running: &mut Running) -> bool {
        if running.large {
            return true;
        }
        let may = self.waiting_large == 0 && self.has_room_for_large();
        running.large = may;
        self.large += u32::from(may);
        may
    }

    /// Charges a flow for work that was done without a seat, in seat-nanoseconds.
    pub fn charge(&mut self, flow: u64, work: u64) {
        let place = self.first_card(flow);
        let queue = &mut self.queues[place];
        queue.spent = queue.spent.max(self.virtual_time).saturating_add(work);
    }

    /// Releases the seats of a request that has ended or waits for something else, and charges the work it caused. Call
    /// [`QueueSet::dispatch`] afterwards.
    pub fn finish(&mut self, now: u64, running: Running, more_work: u64) {
        self.in_use -= running.seats;
        self.running -= 1;
        self.large -= u32::from(running.large);
        if running.generation != self.generation {
            return;
        }
        let seats = u64::from(running.seats);
        let queue = &mut self.queues[running.queue as usize];
        queue.running -= 1;
        queue.running_seats -= running.seats;
        queue.started -= u128::from(running.seats) * u128::from(running.since);
        let used = now.saturating_sub(running.since).saturating_mul(seats);
        let charged = queue.spent.saturating_add(used).saturating_add(more_work);
        queue.spent = charged.saturating_sub(seats * START);
    }

    /// Starts the next request, if one may start. Also returns when it began to wait.
    pub fn dispatch(&mut self, now: u64) -> Option<(T, Running, u64)> {
        if self.waiting + self.waiting_large == 0 {
            return None;
        }
        let room = self.has_room_for_large();
        let debt = u64::from(self.limit.max(1)) * MOST_DEBT;
        let most = self.virtual_time.saturating_add(debt);
        let count = self.queues.len();
        // Of queues that are equal, the shorter one goes first: a busy flow has several queues, and an idle one of them is
        // no better than the only request of another flow.
        let (_, place, lane) = (1..=count)
            .map(|step| (self.last + step) % count)
            .filter_map(|place| {
                let queue = &self.queues[place];
                let lane = queue.next(room)?;
                let spent = queue.spent.saturating_add(queue.owes(now));
                let tag = (spent.clamp(self.virtual_time, most), queue.waiting());
                Some((tag, place, lane))
            })
            .min_by_key(|(tag, ..)| *tag)?;
        // A request that needs more seats than are free is not overtaken by smaller ones, or it might never run.
        let seats = self.queues[place].lane(lane).front()?.seats;
        if !self.may_run(seats) {
            return None;
        }
        let next = self.queues[place].lane(lane).pop_front()?;
        self.left(&next);
        self.last = place;
        let running = self.start(now, place, next.seats, lane == Lane::Large);
        Some((next.payload, running, next.arrived))
    }

    fn left(&mut self, waiting: &Waiting<T>) {
        *self.count(waiting.lane) -= 1;
        self.waiting_seats -= waiting.seats;
    }

    /// Removes a request from its queue; does nothing if it no longer waits. Call [`QueueSet::dispatch`] afterwards.
    pub fn cancel(&mut self, id: u64) -> Option<T> {
        let mut lanes = self.queues.iter_mut().flat_map(|queue| &mut queue.lanes);
        let found = lanes.find_map(|lane| {
            let place = lane.iter().position(|waiting| waiting.id == id)?;
            lane.remove(place)
        })?;
        self.left(&found);
        Some(found.payload)
    }
}

#[cfg(test)]
mod tests;

//! Metrics of levels and schemas, under the names of kube-apiserver.
//!
//! A request that runs at once costs a few additions to counters; text is made when metrics are read. Labels are the
//! names of stored objects, never text of a request, and their number is limited.

use super::fair::{FlowControl, Shared};
use crate::metrics::Histogram;
use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

mod families;

/// Bounds of durations, in seconds.
const DURATIONS: &[f64] = &[
    0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0,
];
const LENGTHS: &[f64] = &[0.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0];
const SEATS: &[f64] = &[1.0, 2.0, 4.0, 10.0];
const WATCHERS: &[f64] = &[0.0, 1.0, 10.0, 100.0, 1000.0, 10000.0];
const NANOS: f64 = 1e9;
/// A request and a seat, in one counter.
const REQUEST: u64 = 1 << 32;

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    QueueFull,
    NoSeat,
    TimeOut,
}

impl Reason {
    const ALL: [Reason; 3] = [Reason::QueueFull, Reason::NoSeat, Reason::TimeOut];

    fn label(self) -> &'static str {
        match self {
            Reason::QueueFull => "queue-full",
            Reason::NoSeat => "concurrency-limit",
            Reason::TimeOut => "time-out",
        }
    }
}

/// The measurements of a schema in its level.
pub(crate) struct Meter {
    /// Requests with one seat that ran at once.
    at_once: AtomicU64,
    /// All other requests that ran.
    other: AtomicU64,
    /// Running requests and their seats, of reads and of writes.
    executing: [AtomicU64; 2],
    waiting: AtomicU64,
    /// Requests that found no free seat on arrival.
    no_room: AtomicU64,
    rejected: [AtomicU64; 3],
    /// By whether they ran in the end.
    waits: [Histogram; 2],
    /// Of ordinary requests and of the starts of watches.
    runs: [Histogram; 2],
    lengths: Histogram,
    seats: Histogram,
    watchers: Histogram,
}

impl Default for Meter {
    fn default() -> Meter {
        let durations = || Histogram::new(DURATIONS, NANOS);
        Meter {
            at_once: AtomicU64::new(0),
            other: AtomicU64::new(0),
            executing: Default::default(),
            waiting: AtomicU64::new(0),
            no_room: AtomicU64::new(0),
            rejected: Default::default(),
            waits: [durations(), durations()],
            runs: [durations(), durations()],
            lengths: Histogram::new(LENGTHS, 1.0),
            seats: Histogram::new(SEATS, 1.0),
            watchers: Histogram::new(WATCHERS, 1.0),
        }
    }
}

/// Counts a request as waiting until it is dropped.
pub(super) struct InQueue<'a>(&'a Meter);

impl Drop for InQueue<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Meter {
    /// Counts a request that runs at once.
    pub(super) fn dispatched(&self, seats: u32) {
        if seats == 1 {
            self.at_once.fetch_add(1, Ordering::Relaxed);
        } else {
            self.waits[1].observe(0);
            self.dispatched_later(seats);
        }
    }

    /// Counts a dispatched request and records its seats: one that waited, or one with several seats.
    pub(super) fn dispatched_later(&self, seats: u32) {
        self.other.fetch_add(1, Ordering::Relaxed);
        self.seats.observe(u64::from(seats));
    }

    pub(super) fn dispatched_total(&self) -> u64 {
        self.at_once.load(Ordering::Relaxed) + self.other.load(Ordering::Relaxed)
    }

    pub(super) fn begins(&self, writes: bool, seats: u32) {
        self.executing[usize::from(writes)]
            .fetch_add(REQUEST + u64::from(seats), Ordering::Relaxed);
    }

    pub(super) fn ends(&self, writes: bool, seats: u32) {
        self.executing[usize::from(writes)]
            .fetch_sub(REQUEST + u64::from(seats), Ordering::Relaxed);
    }

    /// Returns running requests and their seats.
    pub(super) fn executing(&self, writes: bool) -> (usize, usize) {
        let both = self.executing[usize::from(writes)].load(Ordering::Relaxed);
        ((both / REQUEST) as usize, (both % REQUEST) as usize)
    }

    /// Records that a request held a seat for so many nanoseconds.
    pub(super) fn executed(&self, nanos: u64, watch: bool) {
        self.runs[usize::from(watch)].observe(nanos);
    }

    /// Counts a request that found no free seat on arrival.
    pub(super) fn found_no_room(&self) {
        self.no_room.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn queued(&self, length: usize) {
        self.lengths.observe(length as u64);
    }

    pub(super) fn in_queue(&self) -> InQueue<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        InQueue(self)
    }

    pub(super) fn waited(&self, time: Duration, ran: bool) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.waits[usize::from(ran)].observe(nanos);
    }

    pub(super) fn rejected(&self, reason: Reason) {
        self.rejected[reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn rejected_total(&self) -> [u64; 3] {
        Reason::ALL.map(|reason| self.rejected[reason as usize].load(Ordering::Relaxed))
    }

    pub(super) fn timed_out(&self) -> u64 {
        self.rejected[Reason::TimeOut as usize].load(Ordering::Relaxed)
    }

    pub(super) fn woke(&self, watchers: usize) {
        self.watchers.observe(watchers as u64);
    }
}

/// The demand of a level when seats were last distributed.
#[derive(Default)]
pub(super) struct Demand(Mutex<Needed>);

#[derive(Clone, Copy, Default)]
struct Needed {
    high: u32,
    now: u32,
    smoothed: f64,
    target: f64,
}

impl Demand {
    pub(super) fn set(&self, high: u32, now: u32, smoothed: f64) {
        let mut needed = self.0.lock();
        (needed.high, needed.now, needed.smoothed) = (high, now, smoothed);
    }

    pub(super) fn set_target(&self, target: f64) {
        self.0.lock().target = target;
    }

    fn get(&self) -> Needed {
        *self.0.lock()
    }
}

/// Prints the metrics of levels and schemas.
pub(super) struct Meters {
    shared: Weak<Shared>,
    descriptions: Vec<Desc>,
}

impl Meters {
    pub(super) fn of(control: &FlowControl) -> Meters {
        Meters {
            shared: Arc::downgrade(control.shared()),
            descriptions: families::descriptions(),
        }
    }
}

impl Collector for Meters {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let shared = self.shared.upgrade();
        shared.map_or_else(Vec::new, |shared| families::collect(&shared))
    }
}

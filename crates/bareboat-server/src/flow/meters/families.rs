//! The printed metrics: names, labels and values.

use super::super::fair::{Class, Shared};
use super::{Meter, Reason};
use crate::metrics::families::{self, Family, Values};
use prometheus::core::Desc;
use prometheus::proto::MetricFamily;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Maximum number of schemas, and of levels.
const MOST: usize = 500;
const PREFIX: &str = "apiserver_flowcontrol_";
const SCHEMA: &[&str] = &["priority_level", "flow_schema"];
const LEVEL: &[&str] = &["priority_level"];

const DISPATCHED: Family = (
    "dispatched_requests_total",
    "Requests that were executed.",
    SCHEMA,
);
const REJECTED: Family = (
    "rejected_requests_total",
    "Requests that were refused.",
    &["priority_level", "flow_schema", "reason"],
);
const NO_ROOM: Family = (
    "request_dispatch_no_accommodation_total",
    "Requests that found no seat when they came.",
    SCHEMA,
);
const WAITING: Family = (
    "current_inqueue_requests",
    "Requests that wait in queues.",
    SCHEMA,
);
const EXECUTING: Family = (
    "current_executing_requests",
    "Requests that are executed.",
    SCHEMA,
);
const EXECUTING_SEATS: Family = (
    "current_executing_seats",
    "Seats of requests that are executed.",
    SCHEMA,
);
const LENGTH: Family = (
    "request_queue_length_after_enqueue",
    "Length of a queue, as each request sees it after it was put in.",
    SCHEMA,
);
const WAITS: Family = (
    "request_wait_duration_seconds",
    "How long requests waited in queues, in seconds.",
    &["priority_level", "flow_schema", "execute"],
);
const RUNS: Family = (
    "request_execution_seconds",
    "How long requests held a seat, in seconds; for watches, until the beginning of their state was made.",
    &["priority_level", "flow_schema", "type"],
);
const ESTIMATES: Family = (
    "work_estimated_seats",
    "How many seats requests were estimated to need.",
    SCHEMA,
);
const WATCHERS: Family = (
    "watch_count_samples",
    "How many watchers writes woke.",
    SCHEMA,
);
const NOMINAL: Family = (
    "nominal_limit_seats",
    "Seats of a level by its share.",
    LEVEL,
);
const LOWER: Family = (
    "lower_limit_seats",
    "Seats of a level that lends all it may lend.",
    LEVEL,
);
const UPPER: Family = (
    "upper_limit_seats",
    "Seats of a level that borrows all it may borrow.",
    LEVEL,
);
const CURRENT: Family = ("current_limit_seats", "Seats of a level now.", LEVEL);
const HIGH: Family = (
    "demand_seats_high_watermark",
    "The most seats that a level needed in the last period of lending.",
    LEVEL,
);
const AVERAGE: Family = (
    "demand_seats_average",
    "Seats that a level needed at the end of the last period of lending.",
    LEVEL,
);
const SMOOTHED: Family = (
    "demand_seats_smoothed",
    "Seats that a level needed over several periods of lending.",
    LEVEL,
);
const TARGET: Family = (
    "target_seats",
    "Seats that a level should have had in the last period of lending.",
    LEVEL,
);
const FRACTION: Family = (
    "seat_fair_frac",
    "The fraction of its target that each level got when seats were last lent.",
    &[],
);

const ALL: [Family; 20] = [
    DISPATCHED,
    REJECTED,
    NO_ROOM,
    WAITING,
    EXECUTING,
    EXECUTING_SEATS,
    LENGTH,
    WAITS,
    RUNS,
    ESTIMATES,
    WATCHERS,
    NOMINAL,
    LOWER,
    UPPER,
    CURRENT,
    HIGH,
    AVERAGE,
    SMOOTHED,
    TARGET,
    FRACTION,
];

pub(super) fn descriptions() -> Vec<Desc> {
    families::descriptions(PREFIX, &ALL)
}

pub(super) fn collect(shared: &Shared) -> Vec<MetricFamily> {
    let table = shared.table.load();
    let mut values = Values::default();
    for class in table.classes.iter().take(MOST) {
        of_schema(&mut values, class);
    }
    for slot in table.levels.iter().take(MOST) {
        let labels = [slot.spec.name.as_str()];
        let current = slot.level.look(|queues| queues.limit());
        let needed = slot.demand.get();
        for (family, value) in [
            (NOMINAL, f64::from(slot.limits.nominal)),
            (LOWER, f64::from(slot.limits.lower)),
            (UPPER, f64::from(slot.limits.upper)),
            (CURRENT, f64::from(current)),
            (HIGH, f64::from(needed.high)),
            (AVERAGE, f64::from(needed.now)),
            (SMOOTHED, needed.smoothed),
            (TARGET, needed.target),
        ] {
            values.gauge(family, &labels, value);
        }
    }
    let fraction = f64::from_bits(shared.fraction.load(Ordering::Relaxed));
    values.gauge(FRACTION, &[], fraction);
    values.print(PREFIX)
}

fn of_schema(values: &mut Values, class: &Arc<Class>) {
    let meter: &Meter = &class.meter;
    let labels = [class.level.name.as_str(), class.schema.name.as_str()];
    let with = |last: &'static str| [labels[0], labels[1], last];
    values.counter(DISPATCHED, &labels, meter.dispatched_total());
    for (reason, count) in Reason::ALL.into_iter().zip(meter.rejected_total()) {
        if count > 0 {
            values.counter(REJECTED, &with(reason.label()), count);
        }
    }
    let no_room = meter.no_room.load(Ordering::Relaxed);
    values.counter(NO_ROOM, &labels, no_room);
    let (reads, writes) = (meter.executing(false), meter.executing(true));
    values.gauge(EXECUTING, &labels, (reads.0 + writes.0) as f64);
    values.gauge(EXECUTING_SEATS, &labels, (reads.1 + writes.1) as f64);
    let waiting = meter.waiting.load(Ordering::Relaxed);
    values.gauge(WAITING, &labels, waiting as f64);
    let at_once = meter.at_once.load(Ordering::Relaxed);
    values.histogram_if_any(WAITS, &with("false"), meter.waits[0].print());
    values.histogram_if_any(
        WAITS,
        &with("true"),
        meter.waits[1].print_with_more(at_once, 0.0),
    );
    values.histogram_if_any(RUNS, &with("regular"), meter.runs[0].print());
    values.histogram_if_any(RUNS, &with("watch"), meter.runs[1].print());
    values.histogram_if_any(LENGTH, &labels, meter.lengths.print());
    values.histogram_if_any(
        ESTIMATES,
        &labels,
        meter.seats.print_with_more(at_once, 1.0),
    );
    values.histogram_if_any(WATCHERS, &labels, meter.watchers.print());
}

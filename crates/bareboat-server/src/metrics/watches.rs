//! Metrics of watches: events sent, and duration of initial states.

use bareboat_api::kind::Kind;
use parking_lot::Mutex;
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry,
};
use std::collections::HashSet;
use std::time::Instant;

/// Upper bounds of the time that the initial state of a watch takes, in seconds.
const INITIAL: [f64; 25] = [
    0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0,
    30.0, 45.0, 60.0, 90.0, 120.0, 180.0, 300.0,
];
/// Versions of kinds beyond these share one set of labels.
const MOST_LABEL_SETS: usize = 2_000;

/// Measurements of watches.
pub(crate) struct Watches {
    events: IntCounterVec,
    initial: HistogramVec,
    known: Mutex<HashSet<[String; 3]>>,
}

/// The measurements of one watch.
pub(crate) struct WatchMeter {
    /// Events that were sent.
    pub(crate) events: IntCounter,
    initial: Histogram,
    started: Instant,
}

impl Watches {
    pub(super) fn new(registry: &Registry) -> Result<Watches, prometheus::Error> {
        let events = IntCounterVec::new(
            Opts::new("apiserver_watch_events_total", "Events sent to watchers."),
            &["group", "version", "resource"],
        )?;
        registry.register(Box::new(events.clone()))?;
        let initial = HistogramVec::new(
            HistogramOpts::new(
                "apiserver_watch_list_duration_seconds",
                "How long watches took to send their initial state, in seconds.",
            )
            .buckets(INITIAL.to_vec()),
            &["group", "version", "resource", "scope"],
        )?;
        registry.register(Box::new(initial.clone()))?;
        Ok(Watches {
            events,
            initial,
            known: Mutex::default(),
        })
    }

    /// Starts to measure a watch of a version of a kind, in one namespace or in all.
    pub(crate) fn begin(&self, kind: &Kind, version: &str, namespaced: bool) -> WatchMeter {
        let names = [&kind.group, version, &kind.names.plural].map(str::to_owned);
        let mut known = self.known.lock();
        let room = known.contains(&names) || known.len() < MOST_LABEL_SETS;
        let names = match room {
            true => names,
            false => ["", "", "other"].map(str::to_owned),
        };
        known.insert(names.clone());
        drop(known);
        let [group, version, resource] = &names;
        let scope = if namespaced { "namespace" } else { "cluster" };
        WatchMeter {
            events: self.events.with_label_values(&[group, version, resource]),
            initial: self
                .initial
                .with_label_values(&[group.as_str(), version, resource, scope]),
            started: Instant::now(),
        }
    }
}

impl WatchMeter {
    /// Records that the initial state was sent.
    pub(crate) fn initial_sent(&self) {
        self.initial.observe(self.started.elapsed().as_secs_f64());
    }
}

//! Metrics of queues, with the names that dashboards for Kubernetes use.

use bareboat_server::Server;
use bareboat_server::prometheus::core::{Collector, Desc};
use bareboat_server::prometheus::proto::MetricFamily;
use bareboat_server::prometheus::{
    self, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts,
};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Upper bounds of the time that keys wait in a queue and are worked on, in seconds.
const TIMES: [f64; 10] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0];

/// The metrics of all queues, labelled with the name of the controller.
#[derive(Clone)]
pub(crate) struct QueueMetrics {
    depth: IntGaugeVec,
    adds: IntCounterVec,
    retries: IntCounterVec,
    waits: HistogramVec,
    work: HistogramVec,
    unfinished: GaugeVec,
    longest: GaugeVec,
    running: Arc<Mutex<HashMap<String, Running>>>,
}

/// When the work began that a queue waits for.
type Running = Arc<Mutex<Vec<Instant>>>;

/// The metrics of one queue.
pub(crate) struct Meter {
    depth: IntGauge,
    adds: IntCounter,
    retries: IntCounter,
    waits: Histogram,
    work: Histogram,
    running: Running,
}

impl QueueMetrics {
    /// Adds the metrics to those of a server. Returns nothing if the server has others of the same names.
    pub(crate) fn of(server: &Server) -> Option<QueueMetrics> {
        let metrics = QueueMetrics::new().ok()?;
        server.collect(metrics.clone()).ok()?;
        Some(metrics)
    }

    pub(super) fn new() -> Result<QueueMetrics, prometheus::Error> {
        let name = ["name"];
        Ok(QueueMetrics {
            depth: IntGaugeVec::new(
                Opts::new("workqueue_depth", "Keys that wait in a queue."),
                &name,
            )?,
            adds: IntCounterVec::new(
                Opts::new("workqueue_adds_total", "Keys added to a queue."),
                &name,
            )?,
            retries: IntCounterVec::new(
                Opts::new(
                    "workqueue_retries_total",
                    "Keys whose work failed and is tried again.",
                ),
                &name,
            )?,
            waits: HistogramVec::new(
                HistogramOpts::new(
                    "workqueue_queue_duration_seconds",
                    "How long keys waited in a queue, in seconds.",
                )
                .buckets(TIMES.to_vec()),
                &name,
            )?,
            work: HistogramVec::new(
                HistogramOpts::new(
                    "workqueue_work_duration_seconds",
                    "How long the work on a key took, in seconds.",
                )
                .buckets(TIMES.to_vec()),
                &name,
            )?,
            unfinished: GaugeVec::new(
                Opts::new(
                    "workqueue_unfinished_work_seconds",
                    "How long the work on all keys under work has taken so far, in seconds.",
                ),
                &name,
            )?,
            longest: GaugeVec::new(
                Opts::new(
                    "workqueue_longest_running_processor_seconds",
                    "How long the work on the key that is under work longest has taken so far.",
                ),
                &name,
            )?,
            running: Arc::default(),
        })
    }

    /// The metrics of the queue of a controller.
    pub(crate) fn meter(&self, name: &str) -> Meter {
        let running = self
            .running
            .lock()
            .entry(name.to_owned())
            .or_default()
            .clone();
        let name = [name];
        Meter {
            depth: self.depth.with_label_values(&name),
            adds: self.adds.with_label_values(&name),
            retries: self.retries.with_label_values(&name),
            waits: self.waits.with_label_values(&name),
            work: self.work.with_label_values(&name),
            running,
        }
    }

    /// Sets the gauges of work that has not ended.
    fn look(&self) {
        let now = Instant::now();
        for (name, running) in self.running.lock().iter() {
            let times = running.lock();
            let elapsed = times.iter().map(|at| now.saturating_duration_since(*at));
            let longest = elapsed.clone().max().unwrap_or_default();
            let set = |gauge: &GaugeVec, time: Duration| {
                gauge.with_label_values(&[name]).set(time.as_secs_f64());
            };
            set(&self.unfinished, elapsed.sum());
            set(&self.longest, longest);
        }
    }
}

impl Collector for QueueMetrics {
    fn desc(&self) -> Vec<&Desc> {
        [
            self.depth.desc(),
            self.adds.desc(),
            self.retries.desc(),
            self.waits.desc(),
            self.work.desc(),
            self.unfinished.desc(),
            self.longest.desc(),
        ]
        .concat()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        self.look();
        [
            self.depth.collect(),
            self.adds.collect(),
            self.retries.collect(),
            self.waits.collect(),
            self.work.collect(),
            self.unfinished.collect(),
            self.longest.collect(),
        ]
        .concat()
    }
}

impl Meter {
    /// Counts the keys that were waiting before the queue was measured.
    pub(super) fn begin(&self, waiting: usize) {
        self.depth.add(i64::try_from(waiting).unwrap_or(i64::MAX));
        self.adds.inc_by(waiting as u64);
    }

    /// Counts keys that wait no longer, because nobody works on them.
    pub(super) fn forgotten(&self, waiting: usize) {
        self.depth.sub(i64::try_from(waiting).unwrap_or(i64::MAX));
    }

    /// Counts a key that begins to wait.
    pub(super) fn added(&self) {
        self.depth.inc();
        self.adds.inc();
    }

    /// Counts a key that waited until `now`, when the work on it begins.
    pub(super) fn taken(&self, since: Instant, now: Instant) {
        self.depth.dec();
        let waited = now.saturating_duration_since(since);
        self.waits.observe(waited.as_secs_f64());
        self.running.lock().push(now);
    }

    /// Counts work that began at this time and ends now.
    pub(super) fn done(&self, begun: Instant) {
        let mut running = self.running.lock();
        // Absent if it began before the queue was measured. Works that began at the same time are alike.
        if let Some(found) = running.iter().position(|at| *at == begun) {
            running.swap_remove(found);
            self.work.observe(begun.elapsed().as_secs_f64());
        }
    }

    /// Counts a key whose work failed.
    pub(super) fn retried(&self) {
        self.retries.inc();
    }
}

//! Metrics of queues, with the names that dashboards for Kubernetes use.

use bareboat_server::Server;
use bareboat_server::prometheus::core::{Collector, Desc};
use bareboat_server::prometheus::proto::MetricFamily;
use bareboat_server::prometheus::{
    self, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec,
    Opts,
};
use std::time::Instant;

/// Upper bounds of the time that keys wait in a queue, in seconds.
const WAITS: [f64; 10] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0];

/// The metrics of all queues, labelled with the name of the controller.
#[derive(Clone)]
pub(crate) struct QueueMetrics {
    depth: IntGaugeVec,
    adds: IntCounterVec,
    retries: IntCounterVec,
    waits: HistogramVec,
}

/// The metrics of one queue.
pub(crate) struct Meter {
    depth: IntGauge,
    adds: IntCounter,
    retries: IntCounter,
    waits: Histogram,
}

impl QueueMetrics {
    /// Adds the metrics to those of a server. Returns nothing if the server has others of the same names.
    pub(crate) fn of(server: &Server) -> Option<QueueMetrics> {
        let metrics = QueueMetrics::new().ok()?;
        server.collect(metrics.clone()).ok()?;
        Some(metrics)
    }

    fn new() -> Result<QueueMetrics, prometheus::Error> {
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
                .buckets(WAITS.to_vec()),
                &name,
            )?,
        })
    }

    /// The metrics of the queue of a controller.
    pub(crate) fn meter(&self, name: &str) -> Meter {
        let name = [name];
        Meter {
            depth: self.depth.with_label_values(&name),
            adds: self.adds.with_label_values(&name),
            retries: self.retries.with_label_values(&name),
            waits: self.waits.with_label_values(&name),
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
        ]
        .concat()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        [
            self.depth.collect(),
            self.adds.collect(),
            self.retries.collect(),
            self.waits.collect(),
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

    /// Counts a key that waited until now.
    pub(super) fn taken(&self, since: Instant) {
        self.depth.dec();
        self.waits.observe(since.elapsed().as_secs_f64());
    }

    /// Counts a key whose work failed.
    pub(super) fn retried(&self) {
        self.retries.inc();
    }
}

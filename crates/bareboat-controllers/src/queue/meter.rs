//! Measures queues under the names that dashboards for Kubernetes read.

use bareboat_server::Server;
use bareboat_server::prometheus::core::{Collector, Desc};
use bareboat_server::prometheus::proto::MetricFamily;
use bareboat_server::prometheus::{
    self, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec,
    Opts,
};
use std::time::Instant;

/// Upper bounds of the time that things wait in a queue, in seconds.
const WAITS: [f64; 10] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0];

/// The measurements of all queues, by the name of their controller.
#[derive(Clone)]
pub(crate) struct QueueMetrics {
    depth: IntGaugeVec,
    adds: IntCounterVec,
    retries: IntCounterVec,
    waits: HistogramVec,
}

/// The measurements of one queue.
pub(crate) struct Meter {
    depth: IntGauge,
    adds: IntCounter,
    retries: IntCounter,
    waits: Histogram,
}

impl QueueMetrics {
    /// Adds the measurements to those that a server prints. Nothing if it prints others under these names.
    pub(crate) fn of(server: &Server) -> Option<QueueMetrics> {
        let metrics = QueueMetrics::new().ok()?;
        server.collect(metrics.clone()).ok()?;
        Some(metrics)
    }

    fn new() -> Result<QueueMetrics, prometheus::Error> {
        let name = ["name"];
        Ok(QueueMetrics {
            depth: IntGaugeVec::new(
                Opts::new("workqueue_depth", "Things that wait in a queue."),
                &name,
            )?,
            adds: IntCounterVec::new(
                Opts::new("workqueue_adds_total", "Things added to a queue."),
                &name,
            )?,
            retries: IntCounterVec::new(
                Opts::new(
                    "workqueue_retries_total",
                    "Things that failed and are tried again.",
                ),
                &name,
            )?,
            waits: HistogramVec::new(
                HistogramOpts::new(
                    "workqueue_queue_duration_seconds",
                    "How long things waited in a queue, in seconds.",
                )
                .buckets(WAITS.to_vec()),
                &name,
            )?,
        })
    }

    /// The measurements of the queue of a controller.
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
    /// So many things were waiting before the queue was measured.
    pub(super) fn begin(&self, waiting: usize) {
        self.depth.add(i64::try_from(waiting).unwrap_or(i64::MAX));
        self.adds.inc_by(waiting as u64);
    }

    /// Something waits now.
    pub(super) fn added(&self) {
        self.depth.inc();
        self.adds.inc();
    }

    /// Something that waited since then is looked at.
    pub(super) fn taken(&self, since: Instant) {
        self.depth.dec();
        self.waits.observe(since.elapsed().as_secs_f64());
    }

    /// Something failed and is tried again.
    pub(super) fn retried(&self) {
        self.retries.inc();
    }
}

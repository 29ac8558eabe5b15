//! Metrics of availability, with the names of kube-aggregator.

use bareboat_server::Server;
use bareboat_server::prometheus::core::{Collector, Desc};
use bareboat_server::prometheus::proto::MetricFamily;
use bareboat_server::prometheus::{self, IntCounterVec, IntGaugeVec, Opts};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Which APIServices are unavailable, and how often they became so.
#[derive(Clone)]
pub(super) struct AvailabilityMetrics {
    unavailable: IntGaugeVec,
    total: IntCounterVec,
    /// The reasons that were counted, so that a deleted APIService leaves no series.
    reasons: Arc<Mutex<HashMap<String, HashSet<&'static str>>>>,
}

impl AvailabilityMetrics {
    /// Adds the metrics to those of a server. Returns nothing if the server has others of the same names.
    pub(super) fn of(server: &Server) -> Option<AvailabilityMetrics> {
        let metrics = AvailabilityMetrics::new().ok()?;
        server.collect(metrics.clone()).ok()?;
        Some(metrics)
    }

    fn new() -> Result<AvailabilityMetrics, prometheus::Error> {
        Ok(AvailabilityMetrics {
            unavailable: IntGaugeVec::new(
                Opts::new(
                    "aggregator_unavailable_apiservice",
                    "Whether a remote APIService is unavailable, by name.",
                ),
                &["name"],
            )?,
            total: IntCounterVec::new(
                Opts::new(
                    "aggregator_unavailable_apiservice_total",
                    "How often an APIService became unavailable, by name and reason.",
                ),
                &["name", "reason"],
            )?,
            reasons: Arc::default(),
        })
    }

    pub(super) fn set(&self, name: &str, available: bool) {
        let gauge = self.unavailable.with_label_values(&[name]);
        gauge.set(i64::from(!available));
    }

    pub(super) fn count(&self, name: &str, reason: &'static str) {
        self.total.with_label_values(&[name, reason]).inc();
        let mut reasons = self.reasons.lock();
        reasons.entry(name.to_owned()).or_default().insert(reason);
    }

    /// Drops the series of an APIService. A missing one is not an error.
    pub(super) fn forget(&self, name: &str) {
        let _ = self.unavailable.remove_label_values(&[name]);
        for reason in self.reasons.lock().remove(name).into_iter().flatten() {
            let _ = self.total.remove_label_values(&[name, reason]);
        }
    }
}

impl Collector for AvailabilityMetrics {
    fn desc(&self) -> Vec<&Desc> {
        let mut all = self.unavailable.desc();
        all.extend(self.total.desc());
        all
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let mut all = self.unavailable.collect();
        all.extend(self.total.collect());
        all
    }
}

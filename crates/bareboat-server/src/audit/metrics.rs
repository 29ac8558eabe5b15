//! Metrics of audit.

use bareboat_audit::Level;
use prometheus::core::Collector;
use prometheus::{IntCounter, IntCounterVec, Opts};

/// Counters of audit.
#[derive(Clone)]
pub(crate) struct AuditMetrics {
    events: IntCounter,
    rejected: IntCounter,
    levels: IntCounterVec,
    errors: IntCounterVec,
}

impl AuditMetrics {
    pub(super) fn new() -> AuditMetrics {
        let counter =
            |name, help| IntCounter::new(name, help).expect("the name of the metric is valid");
        let family = |name, help, label| {
            IntCounterVec::new(Opts::new(name, help), &[label])
                .expect("the name of the metric is valid")
        };
        AuditMetrics {
            events: counter(
                "apiserver_audit_event_total",
                "Audit events that were made and handed to the sinks.",
            ),
            rejected: counter(
                "apiserver_audit_requests_rejected_total",
                "Requests that were refused because they could not be audited.",
            ),
            levels: family(
                "apiserver_audit_level_total",
                "Requests by the level their audit policy gave them.",
                "level",
            ),
            errors: family(
                "apiserver_audit_error_total",
                "Audit events that a sink could not take or write, by sink.",
                "plugin",
            ),
        }
    }

    /// Returns the collectors for the server's metrics.
    pub(crate) fn collectors(&self) -> Vec<Box<dyn Collector>> {
        vec![
            Box::new(self.events.clone()),
            Box::new(self.rejected.clone()),
            Box::new(self.levels.clone()),
            Box::new(self.errors.clone()),
        ]
    }

    pub(super) fn event(&self) {
        self.events.inc();
    }

    pub(super) fn rejected(&self) {
        self.rejected.inc();
    }

    pub(super) fn level(&self, level: Level) {
        self.levels.with_label_values(&[level.name()]).inc();
    }

    pub(super) fn failed(&self, plugin: &str, events: usize) {
        let events = u64::try_from(events).unwrap_or(u64::MAX);
        self.errors.with_label_values(&[plugin]).inc_by(events);
    }
}

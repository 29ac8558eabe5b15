//! Metrics of webhooks, under the names of kube-apiserver.

use bareboat_api::admission::Operation;
use parking_lot::Mutex;
use prometheus::core::Collector;
use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, Opts};
use std::collections::HashSet;
use std::time::Duration;

/// Upper bounds of durations in seconds.
const DURATIONS: [f64; 8] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0];
/// How many names of webhooks have their own series. The rest share one.
const NAMES: usize = 500;
/// Larger codes are counted as this one.
const LARGEST_CODE: u16 = 600;

/// Measurements of webhooks.
pub(crate) struct WebhookMetrics {
    durations: HistogramVec,
    requests: IntCounterVec,
    rejections: IntCounterVec,
    open: IntCounterVec,
    names: Mutex<HashSet<String>>,
}

/// How the call of a webhook ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The request goes on.
    Admitted,
    /// The call failed with a code; whether the request is refused because of it.
    CallFailed { code: u16, rejected: bool },
    /// The webhook refused the request with a code.
    Denied(u16),
    /// Something else failed.
    Error,
}

impl WebhookMetrics {
    pub(crate) fn new() -> Result<WebhookMetrics, prometheus::Error> {
        let counter = |name: &str, help: &str, labels: &[&str]| {
            let name = format!("apiserver_admission_{name}");
            IntCounterVec::new(Opts::new(name, help), labels)
        };
        let histogram = |name: &str, help: &str, bounds: &[f64], labels: &[&str]| {
            let options = HistogramOpts::new(format!("apiserver_admission_{name}"), help);
            HistogramVec::new(options.buckets(bounds.to_vec()), labels)
        };
        Ok(WebhookMetrics {
            durations: histogram(
                "webhook_admission_duration_seconds",
                "How long webhooks took, in seconds.",
                &DURATIONS,
                &["name", "type", "operation", "rejected"],
            )?,
            requests: counter(
                "webhook_request_total",
                "Calls of webhooks.",
                &["name", "type", "operation", "code", "rejected"],
            )?,
            rejections: counter(
                "webhook_rejection_count",
                "Requests refused by webhooks, or because a webhook failed.",
                &["name", "type", "operation", "error_type", "rejection_code"],
            )?,
            open: counter(
                "webhook_fail_open_count",
                "Failed calls of webhooks that were ignored.",
                &["name", "type"],
            )?,
            names: Mutex::default(),
        })
    }

    pub(crate) fn collectors(&self) -> Vec<Box<dyn Collector>> {
        vec![
            Box::new(self.durations.clone()),
            Box::new(self.requests.clone()),
            Box::new(self.rejections.clone()),
            Box::new(self.open.clone()),
        ]
    }

    /// Returns the label for a webhook: its name, unless there are too many.
    fn label<'n>(&self, name: &'n str) -> &'n str {
        let mut names = self.names.lock();
        if names.contains(name) {
            return name;
        }
        if names.len() >= NAMES {
            return "other";
        }
        names.insert(name.to_owned());
        name
    }

    /// Records a call.
    pub(super) fn called(
        &self,
        name: &str,
        step: &str,
        operation: Operation,
        took: Duration,
        ended: Ended,
    ) {
        let (name, operation) = (self.label(name), operation.name());
        let (code, rejected, error) = match ended {
            Ended::Admitted => (200, false, None),
            Ended::CallFailed { code, rejected } => {
                (code, rejected, rejected.then_some("calling_webhook_error"))
            }
            Ended::Denied(code) => (code, true, Some("no_error")),
            Ended::Error => (0, true, Some("apiserver_internal_error")),
        };
        let code = code.min(LARGEST_CODE).to_string();
        let was_rejected = if rejected { "true" } else { "false" };
        self.requests
            .with_label_values(&[name, step, operation, &code, was_rejected])
            .inc();
        self.durations
            .with_label_values(&[name, step, operation, was_rejected])
            .observe(took.as_secs_f64());
        if let Some(error) = error {
            self.rejections
                .with_label_values(&[name, step, operation, error, &code])
                .inc();
        }
    }

    /// Records a failed call that was ignored.
    pub(super) fn failed_open(&self, name: &str, step: &str) {
        self.open.with_label_values(&[self.label(name), step]).inc();
    }
}

//! Counters of exported spans.

use prometheus::{IntCounterVec, Opts};

/// Sent and dropped spans.
#[derive(Clone)]
pub(super) struct OtlpMetrics(IntCounterVec);

impl OtlpMetrics {
    pub(super) fn new() -> OtlpMetrics {
        let opts = Opts::new(
            "bareboat_otlp_spans_total",
            "Spans that a collector took (sent), or that were dropped because the buffer was full or the collector failed (dropped).",
        );
        let counters =
            IntCounterVec::new(opts, &["outcome"]).expect("the name of the metric is valid");
        for outcome in ["sent", "dropped"] {
            counters.with_label_values(&[outcome]);
        }
        OtlpMetrics(counters)
    }

    pub(super) fn collector(&self) -> IntCounterVec {
        self.0.clone()
    }

    pub(super) fn sent(&self, spans: usize) {
        self.0.with_label_values(&["sent"]).inc_by(spans as u64);
    }

    pub(super) fn dropped(&self, spans: usize) {
        self.0.with_label_values(&["dropped"]).inc_by(spans as u64);
    }
}

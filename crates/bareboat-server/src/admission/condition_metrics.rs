//! Metrics of match conditions, of webhooks and of policies, under the names of kube-apiserver.

use bareboat_api::admission::Operation;
use parking_lot::Mutex;
use prometheus::core::Collector;
use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, Opts};
use std::collections::HashSet;
use std::time::Duration;

/// Upper bounds of durations in seconds.
const DURATIONS: [f64; 7] = [0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25];
/// How many names have their own series. The rest share one.
const NAMES: usize = 1000;

/// Whose conditions were evaluated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judge<'n> {
    /// The name of the webhook or policy.
    pub(super) name: &'n str,
    /// `webhook` or `policy`.
    pub(super) kind: &'static str,
    /// The step of admission.
    pub(super) step: &'static str,
}

/// Measurements of match conditions.
pub(crate) struct ConditionMetrics {
    errors: IntCounterVec,
    exclusions: IntCounterVec,
    durations: HistogramVec,
    names: Mutex<HashSet<(&'static str, String)>>,
}

impl ConditionMetrics {
    pub(crate) fn new() -> Result<ConditionMetrics, prometheus::Error> {
        let labels = ["name", "kind", "type", "operation"];
        let name = |end: &str| format!("apiserver_admission_match_condition_{end}");
        let counter =
            |end: &str, help: &str| IntCounterVec::new(Opts::new(name(end), help), &labels);
        let durations = HistogramOpts::new(
            name("evaluation_seconds"),
            "How long match conditions took, in seconds.",
        );
        Ok(ConditionMetrics {
            errors: counter("evaluation_errors_total", "Match conditions that failed.")?,
            exclusions: counter(
                "exclusions_total",
                "Requests that match conditions excluded.",
            )?,
            durations: HistogramVec::new(durations.buckets(DURATIONS.to_vec()), &labels)?,
            names: Mutex::default(),
        })
    }

    pub(crate) fn collectors(&self) -> Vec<Box<dyn Collector>> {
        vec![
            Box::new(self.errors.clone()),
            Box::new(self.exclusions.clone()),
            Box::new(self.durations.clone()),
        ]
    }

    /// Returns the label for a webhook or policy: its name, unless there are too many.
    fn label<'n>(&self, kind: &'static str, name: &'n str) -> &'n str {
        let mut names = self.names.lock();
        let key = (kind, name.to_owned());
        if names.contains(&key) {
            return name;
        }
        if names.len() >= NAMES {
            return "other";
        }
        names.insert(key);
        name
    }

    /// Records an evaluation: how long it took, and how many conditions failed.
    pub(super) fn evaluated(
        &self,
        judge: Judge<'_>,
        operation: Operation,
        took: Duration,
        errors: usize,
    ) {
        let labels = [
            self.label(judge.kind, judge.name),
            judge.kind,
            judge.step,
            operation.name(),
        ];
        let durations = self.durations.with_label_values(&labels);
        durations.observe(took.as_secs_f64());
        if errors > 0 {
            let counter = self.errors.with_label_values(&labels);
            counter.inc_by(errors as u64);
        }
    }

    /// Records that a webhook is not called because of its conditions.
    pub(super) fn excluded(&self, judge: Judge<'_>, operation: Operation) {
        let name = self.label(judge.kind, judge.name);
        let labels = [name, judge.kind, judge.step, operation.name()];
        self.exclusions.with_label_values(&labels).inc();
    }
}

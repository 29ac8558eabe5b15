//! Metrics of policies, under the names of kube-apiserver.

use bareboat_policy::{Check, ErrorType};
use parking_lot::Mutex;
use prometheus::core::Collector;
use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, Opts};
use std::collections::HashSet;
use std::time::Duration;

/// Upper bounds of durations in seconds.
const DURATIONS: [f64; 5] = [0.000_000_5, 0.001, 0.01, 0.1, 1.0];
/// How many pairs of a policy and a binding have their own series. The rest share one.
const PAIRS: usize = 500;

/// Measurements of policies.
pub(crate) struct PolicyMetrics {
    validating: Family,
    mutating: Family,
    pairs: Mutex<HashSet<(String, String)>>,
}

struct Family {
    checks: IntCounterVec,
    durations: HistogramVec,
}

impl Family {
    fn new(name: &str, labels: &[&str]) -> Result<Family, prometheus::Error> {
        let prefix = format!("apiserver_{name}_admission_policy");
        let checks = Opts::new(
            format!("{prefix}_check_total"),
            "Checks of admission policies, by policy and binding.",
        );
        let durations = HistogramOpts::new(
            format!("{prefix}_check_duration_seconds"),
            "How long checks of admission policies took, in seconds.",
        );
        Ok(Family {
            checks: IntCounterVec::new(checks, labels)?,
            durations: HistogramVec::new(durations.buckets(DURATIONS.to_vec()), labels)?,
        })
    }

    fn observe(&self, labels: &[&str], took: Duration) {
        self.checks.with_label_values(labels).inc();
        let durations = self.durations.with_label_values(labels);
        durations.observe(took.as_secs_f64());
    }
}

impl PolicyMetrics {
    pub(crate) fn new() -> Result<PolicyMetrics, prometheus::Error> {
        Ok(PolicyMetrics {
            validating: Family::new(
                "validating",
                &[
                    "policy",
                    "policy_binding",
                    "error_type",
                    "enforcement_action",
                ],
            )?,
            mutating: Family::new("mutating", &["policy", "policy_binding", "error_type"])?,
            pairs: Mutex::default(),
        })
    }

    pub(crate) fn collectors(&self) -> Vec<Box<dyn Collector>> {
        let families = [&self.validating, &self.mutating].into_iter();
        families
            .flat_map(|family| -> [Box<dyn Collector>; 2] {
                [
                    Box::new(family.checks.clone()),
                    Box::new(family.durations.clone()),
                ]
            })
            .collect()
    }

    /// Returns the labels for a policy and a binding: their names, unless there are too many.
    fn labels<'n>(&self, policy: &'n str, binding: &'n str) -> (&'n str, &'n str) {
        let mut pairs = self.pairs.lock();
        let pair = (policy.to_owned(), binding.to_owned());
        if pairs.contains(&pair) {
            return (policy, binding);
        }
        if pairs.len() >= PAIRS {
            return ("other", "other");
        }
        pairs.insert(pair);
        (policy, binding)
    }

    /// Records a validation that failed, or could not be evaluated.
    pub(super) fn validated(&self, check: &Check, took: Duration) {
        let (policy, binding) = self.labels(&check.policy, &check.binding);
        let (error, action) = (check.error.label(), check.enforcement.label());
        self.validating
            .observe(&[policy, binding, error, action], took);
    }

    /// Records a mutation.
    pub(super) fn mutated(
        &self,
        (policy, binding): (&str, &str),
        error: ErrorType,
        took: Duration,
    ) {
        let (policy, binding) = self.labels(policy, binding);
        self.mutating
            .observe(&[policy, binding, error.label()], took);
    }
}

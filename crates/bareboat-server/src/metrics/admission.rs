//! Metrics of admission: how long its two steps took.

use bareboat_api::admission::Operation;
use prometheus::{Histogram, HistogramOpts, HistogramVec, Registry};
use std::time::Instant;

/// Upper bounds of durations in seconds.
const DURATIONS: [f64; 6] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5];
const STEPS: [&str; 2] = ["admit", "validate"];
const OPERATIONS: [Operation; 4] = [
    Operation::Create,
    Operation::Update,
    Operation::Delete,
    Operation::Connect,
];

/// Measurements of admission.
pub(crate) struct Admission {
    family: HistogramVec,
    /// By step and operation, for admitted writes. Cached, because every write uses it.
    admitted: Vec<Histogram>,
}

/// A step of admission.
#[derive(Clone, Copy)]
pub(crate) enum Step {
    /// Mutating admission.
    Admit,
    /// Validating admission.
    Validate,
}

impl Admission {
    pub(super) fn new(registry: &Registry) -> Result<Admission, prometheus::Error> {
        let family = HistogramVec::new(
            HistogramOpts::new(
                "apiserver_admission_step_admission_duration_seconds",
                "How long the steps of admission took, in seconds.",
            )
            .buckets(DURATIONS.to_vec()),
            &["type", "operation", "rejected"],
        )?;
        registry.register(Box::new(family.clone()))?;
        let admitted = STEPS
            .iter()
            .flat_map(|step| OPERATIONS.iter().map(move |operation| (step, operation)))
            .map(|(step, operation)| family.with_label_values(&[*step, operation.name(), "false"]))
            .collect();
        Ok(Admission { family, admitted })
    }

    /// Records the end of a step.
    pub(crate) fn observe(
        &self,
        step: Step,
        operation: Operation,
        rejected: bool,
        started: Instant,
    ) {
        let seconds = started.elapsed().as_secs_f64();
        if !rejected {
            let place = OPERATIONS.iter().position(|known| *known == operation);
            let at = step as usize * OPERATIONS.len() + place.unwrap_or(0);
            self.admitted[at].observe(seconds);
            return;
        }
        let values = [STEPS[step as usize], operation.name(), "true"];
        self.family.with_label_values(&values).observe(seconds);
    }
}

//! Metrics of admission: how long its two steps took.

use super::families::{Family, Values, descriptions};
use super::histogram::Histogram;
use bareboat_api::admission::Operation;
use prometheus::Registry;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use std::sync::Arc;
use std::time::Duration;

/// Upper bounds of durations in seconds.
const DURATIONS: &[f64] = &[0.005, 0.025, 0.1, 0.5, 1.0, 2.5];
const STEPS: [&str; 2] = ["admit", "validate"];
const OPERATIONS: [Operation; 4] = [
    Operation::Create,
    Operation::Update,
    Operation::Delete,
    Operation::Connect,
];
const TOOK: Family = (
    "apiserver_admission_step_admission_duration_seconds",
    "How long the steps of admission took, in seconds.",
    &["type", "operation", "rejected"],
);

/// Measurements of admission.
pub(crate) struct Admission(Arc<[Took; STEPS.len() * OPERATIONS.len()]>);

/// How long a step took for an operation, in nanoseconds.
struct Took {
    admitted: Histogram,
    rejected: Histogram,
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
        let durations = || Histogram::new(DURATIONS, 1e9);
        let all = Arc::new(std::array::from_fn(|_| Took {
            admitted: durations(),
            rejected: durations(),
        }));
        registry.register(Box::new(Printed {
            all: Admission(Arc::clone(&all)),
            descriptions: descriptions("", &[TOOK]),
        }))?;
        Ok(Admission(all))
    }

    /// Records how long a step took.
    pub(crate) fn observe(
        &self,
        step: Step,
        operation: Operation,
        rejected: bool,
        duration: Duration,
    ) {
        let place = OPERATIONS.iter().position(|known| *known == operation);
        let took = &self.0[step as usize * OPERATIONS.len() + place.unwrap_or(0)];
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        match rejected {
            true => took.rejected.observe(nanos),
            false => took.admitted.observe(nanos),
        }
    }
}

/// The measurements as the `prometheus` crate reads them.
struct Printed {
    all: Admission,
    descriptions: Vec<Desc>,
}

impl Collector for Printed {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let mut values = Values::default();
        for (place, took) in self.all.0.iter().enumerate() {
            let step = STEPS[place / OPERATIONS.len()];
            let operation = OPERATIONS[place % OPERATIONS.len()].name();
            let labels = |rejected| [step, operation, rejected];
            values.histogram(TOOK, &labels("false"), took.admitted.print());
            values.histogram_if_any(TOOK, &labels("true"), took.rejected.print());
        }
        values.print("")
    }
}

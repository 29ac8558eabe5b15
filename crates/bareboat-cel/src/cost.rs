//! Costs: what a call costs while running, and what an expression may cost at most.
//!
//! Upstream: cel-go interpreter/runtimecost.go and checker/cost.go, apiserver
//! pkg/cel/library/cost.go. The numbers are part of the API: they decide which rules are accepted.

mod actual;
mod estimate;
mod functions;
mod size;

pub(crate) use actual::Rule;
pub use estimate::{NoHints, SizeHints, estimate_cost};
pub use size::CostEstimate;

/// What making a list costs.
pub(crate) const LIST: u64 = 10;
/// What making a map costs.
pub(crate) const MAP: u64 = 30;
/// What making an object costs.
pub(crate) const STRUCT: u64 = 40;
/// What reading one character costs.
pub(crate) const PER_CHARACTER: f64 = 0.1;
/// What one character of a regular expression multiplies the cost of matching by.
pub(crate) const PER_PATTERN_CHARACTER: f64 = 0.25;
/// What asking the authorizer costs: two questions fit into an evaluation.
pub(crate) const AUTHORIZATION: u64 = 350_000;

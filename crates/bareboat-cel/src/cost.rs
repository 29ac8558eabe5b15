//! Costs: the actual cost of a call, and the maximum cost of an expression.
//!
//! Upstream: cel-go interpreter/runtimecost.go and checker/cost.go, apiserver
//! pkg/cel/library/cost.go. The numbers are part of the API: they decide which rules are accepted.

mod actual;
mod estimate;
mod functions;
mod hints;
mod size;

pub(crate) use actual::Rule;
pub use estimate::estimate_cost;
pub use hints::{NoHints, SizeHints};
pub use size::CostEstimate;

/// The cost of creating a list.
pub(crate) const LIST: u64 = 10;
/// The cost of creating a map.
pub(crate) const MAP: u64 = 30;
/// The cost of creating an object.
pub(crate) const STRUCT: u64 = 40;
/// The cost of reading one character.
pub(crate) const PER_CHARACTER: f64 = 0.1;
/// The factor of one pattern character in the cost of matching.
pub(crate) const PER_PATTERN_CHARACTER: f64 = 0.25;
/// The cost of one authorizer check: two checks fit into an evaluation.
pub(crate) const AUTHORIZATION: u64 = 350_000;

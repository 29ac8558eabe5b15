//! Decides which floats count as integers.

/// The largest integer that a float represents exactly.
const EXACT: f64 = 9_007_199_254_740_991.0;

/// Returns whether a float is an integer in JSON.
pub(crate) fn is_integer(value: f64) -> bool {
    value.fract() == 0.0 && value.abs() <= EXACT
}

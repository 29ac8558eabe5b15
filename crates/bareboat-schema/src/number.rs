//! Numbers: which floats count as integers.

/// The largest integer a float tells from its neighbours.
const EXACT: f64 = 9_007_199_254_740_991.0;

/// Whether a float is an integer as JSON means it.
pub(crate) fn is_integer(value: f64) -> bool {
    value.fract() == 0.0 && value.abs() <= EXACT
}

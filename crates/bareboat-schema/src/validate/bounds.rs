//! Numeric limits: comparing and printing.

use bareboat_api::Value;
use bareboat_api::field::go_float;
use std::cmp::Ordering;

/// Prints a bound; bounds of integers print as integers.
pub(super) fn shown_bound(value: &Value, bound: f64) -> String {
    match value {
        Value::Int(_) => format!("{}", bound as i64),
        _ => go_float(bound),
    }
}

/// Returns whether a value is on the wrong side of a limit.
pub(super) fn exceeds(limit: f64, value: &Value, exclusive: bool, side: Ordering) -> bool {
    let order = match value {
        // Integers beyond 2^53 compare as integers when the bound is one.
        Value::Int(number) if limit.fract() == 0.0 && limit.abs() < 9.2e18 => {
            Some(number.cmp(&(limit as i64)))
        }
        other => other.as_f64().and_then(|number| number.partial_cmp(&limit)),
    };
    order == Some(side) || exclusive && order == Some(Ordering::Equal)
}

/// Returns whether a value is a multiple of a factor, within float precision.
pub(super) fn is_multiple(value: &Value, factor: f64) -> bool {
    if factor <= 0.0 {
        return true;
    }
    if let Value::Int(number) = value
        && factor.fract() == 0.0
        && factor < 9.2e18
    {
        return number % (factor as i64) == 0;
    }
    let Some(number) = value.as_f64() else {
        return true;
    };
    let quotient = if factor < 1.0 {
        1.0 / factor * number
    } else {
        number / factor
    };
    (quotient - quotient.round()).abs() <= 1e-9 * quotient.abs().max(1.0)
}

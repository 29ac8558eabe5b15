//! Numbers: conversion of whole floats to integers, and printing of floats.

const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

/// Returns the integer that equals a float exactly, if any.
pub(super) fn whole(value: f64) -> Option<i64> {
    // Above 2^53 a float does not distinguish neighbouring integers, but equality stays exact.
    (value.fract() == 0.0 && (-TWO_TO_63..TWO_TO_63).contains(&value)).then_some(value as i64)
}

/// Appends a float the way Go's encoder prints it: plain digits between 1e-6 and 1e21, an
/// exponent outside, and no trailing `.0`.
pub fn write_float(value: f64, out: &mut Vec<u8>) {
    if !value.is_finite() {
        // JSON has no such numbers and our parsers never produce them; `null` keeps the output
        // valid.
        out.extend_from_slice(b"null");
        return;
    }
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        let text = format!("{value:e}");
        // Go writes a sign in every exponent, and two digits only for small negative ones.
        match text.split_once('e') {
            Some((mantissa, exponent)) if !exponent.starts_with('-') => {
                out.extend_from_slice(format!("{mantissa}e+{exponent}").as_bytes());
            }
            _ => out.extend_from_slice(text.as_bytes()),
        }
        return;
    }
    out.extend_from_slice(format!("{value}").as_bytes());
}

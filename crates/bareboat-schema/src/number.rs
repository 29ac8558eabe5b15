//! Numbers: which floats count as integers, how messages print them, and settling `1.0` to `1`.

use crate::schema::{Flags, Kind, Node, Schema};
use bareboat_api::Value;

/// The largest integer a float tells from its neighbours.
const EXACT: f64 = 9_007_199_254_740_991.0;

/// Whether a float is an integer as JSON means it.
pub(crate) fn is_integer(value: f64) -> bool {
    value.fract() == 0.0 && value.abs() <= EXACT
}

/// A float as Go's `%v` prints it: an exponent from a million on, and below a ten-thousandth.
pub(crate) fn print(value: f64) -> String {
    if value == 0.0 || (1e-4..1e6).contains(&value.abs()) {
        return format!("{value}");
    }
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{digits:0>2}")
}

impl Schema {
    /// Turns floats without a fraction into integers wherever the schema asks for an integer.
    pub fn settle_numbers(&self, object: &mut Value) {
        settle(&self.root, object);
    }
}

fn settle(node: &Node, value: &mut Value) {
    if !node.has(Flags::INTEGERS_BELOW) {
        return;
    }
    match value {
        Value::Float(number) => {
            let wanted = node.kind == Kind::Integer || node.has(Flags::INT_OR_STRING);
            if wanted && is_integer(*number) {
                *value = Value::Int(*number as i64);
            }
        }
        Value::Array(list) => {
            if let Some(items) = &node.items {
                list.iter_mut().for_each(|item| settle(items, item));
            }
        }
        Value::Object(map) => {
            for (name, member) in map.iter_mut() {
                if let Some(schema) = node.member(name) {
                    settle(schema, member);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_print_as_go_prints_them() {
        for (value, expected) in [
            (5.0, "5"),
            (100_000.0, "100000"),
            (1e6, "1e+06"),
            (123_456_789.0, "1.23456789e+08"),
            (1e20, "1e+20"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-2.5, "-2.5"),
            (0.0, "0"),
        ] {
            assert_eq!(print(value), expected);
        }
    }
}

//! A set of values, to detect duplicates.

use super::{Value, number};
use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash, Hasher, RandomState};

/// A set of values.
///
/// Comparing each value with all earlier ones takes time that grows with the square of their
/// number. This set hashes each value, and compares only values with the same hash.
#[derive(Debug, Default)]
pub struct Seen<'v> {
    state: RandomState,
    places: HashMap<u64, Vec<&'v Value>>,
}

impl<'v> Seen<'v> {
    /// Returns an empty set.
    pub fn new() -> Seen<'v> {
        Seen::default()
    }

    /// Adds a value; returns false if the set already contains an equal one.
    pub fn insert(&mut self, value: &'v Value) -> bool {
        let mut hasher = self.state.build_hasher();
        hash(value, &mut hasher);
        let place = self.places.entry(hasher.finish()).or_default();
        let fresh = !place.contains(&value);
        if fresh {
            place.push(value);
        }
        fresh
    }
}

/// Hashes a value so that equal values have equal hashes.
fn hash(value: &Value, to: &mut impl Hasher) {
    match value {
        Value::Null => to.write_u8(0),
        Value::Bool(value) => {
            to.write_u8(1);
            value.hash(to);
        }
        Value::Int(value) => whole(*value, to),
        Value::Float(value) => match number::whole(*value) {
            Some(value) => whole(value, to),
            None => {
                to.write_u8(3);
                to.write_u64(value.to_bits());
            }
        },
        Value::String(text) => {
            to.write_u8(4);
            text.hash(to);
        }
        Value::Array(items) => {
            to.write_u8(5);
            to.write_usize(items.len());
            items.iter().for_each(|item| hash(item, to));
        }
        Value::Object(members) => {
            to.write_u8(6);
            to.write_usize(members.len());
            for (key, member) in members.iter() {
                key.hash(to);
                hash(member, to);
            }
        }
    }
}

fn whole(value: i64, to: &mut impl Hasher) {
    to.write_u8(2);
    to.write_i64(value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    #[test]
    fn equal_values_are_detected_in_any_notation() {
        let values = [
            value!(null),
            value!(true),
            value!(1),
            value!(1.5),
            value!("1"),
            value!([1, [2]]),
            value!({"a": 1, "b": {"c": null}}),
            value!({}),
            value!([]),
        ];
        let again = values.clone();
        let mut seen = Seen::new();
        assert!(values.iter().all(|value| seen.insert(value)));
        assert!(!again.iter().any(|value| seen.insert(value)));
        for (written, same) in [
            (Value::Float(1.0), true),
            (Value::Float(-0.0), false),
            (value!([1.0, [2]]), true),
            (value!([1, 2]), false),
        ] {
            let mut seen = Seen::new();
            for value in &values {
                seen.insert(value);
            }
            assert_eq!(seen.insert(&written), !same, "{written}");
        }
        let (zero, minus) = (value!(0), Value::Float(-0.0));
        let mut seen = Seen::new();
        assert!(seen.insert(&zero) && !seen.insert(&minus));
    }
}

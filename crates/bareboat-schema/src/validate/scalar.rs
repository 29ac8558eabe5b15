//! Validation of strings and numbers: lengths, patterns, formats and bounds.

use super::bounds::{exceeds, is_multiple, shown_bound};
use super::value::{Checker, ValuePath};
use crate::format::Format;
use crate::number;
use crate::schema::{Checks, Flags, Kind, Node};
use bareboat_api::field::go_quote;
use bareboat_api::{FieldError, FieldErrorKind, Value};

impl Checker<'_> {
    /// Checks a string and gives how many checks passed.
    pub(super) fn check_text(
        &mut self,
        checks: &Checks,
        text: &str,
        place: &ValuePath<'_>,
    ) -> usize {
        let mut passed = 0;
        self.check_length_and_pattern(checks, text, place);
        if let Some((format, name)) = &checks.format
            && format.is_for_text()
        {
            passed += 1;
            if !format.accepts(text) {
                let place_text = place.text();
                let detail = format!(
                    "{place_text} in body must be of type {name}: {}",
                    go_quote(text)
                );
                self.push(
                    &place_text,
                    FieldErrorKind::TypeInvalid,
                    Value::string(text),
                    detail,
                );
            }
        }
        passed
    }

    /// Only the first of the three is reported.
    fn check_length_and_pattern(&mut self, checks: &Checks, text: &str, place: &ValuePath<'_>) {
        // A text has at most as many characters as bytes.
        let may_be_long = |limit| text.len() as i64 > limit;
        if checks.max_length.is_some_and(may_be_long) || checks.min_length.is_some() {
            let length = text.chars().count() as i64;
            if let Some(limit) = checks.max_length
                && length > limit
            {
                let path = self.path(&place.text());
                let limit = usize::try_from(limit).unwrap_or(0);
                self.tell(FieldError::too_long(path, limit));
                return;
            }
            if let Some(limit) = checks.min_length
                && length < limit
            {
                let detail = format!("should be at least {limit} chars long");
                self.invalid(place, Value::string(text), &detail);
                return;
            }
        }
        if let Some(pattern) = &checks.pattern {
            match pattern.matches(text) {
                Ok(true) => {}
                Ok(false) => {
                    let detail = format!("should match '{}'", pattern.source());
                    self.invalid(place, Value::string(text), &detail);
                }
                Err(reason) => {
                    let detail = format!(
                        "should match '{}, but pattern is invalid: {reason}'",
                        pattern.source()
                    );
                    self.invalid(place, Value::string(text), &detail);
                }
            }
        }
    }

    /// Checks a number.
    pub(super) fn check_number(&mut self, node: &Node, value: &Value, place: &ValuePath<'_>) {
        let checks = node.checks.as_deref();
        let format = checks.and_then(|checks| checks.format.as_ref().map(|(format, _)| *format));
        let in_range = match (node.kind, format, value) {
            _ if node.has(Flags::INT_OR_STRING) => true,
            (Kind::Integer, Some(Format::Int32), _) => value
                .as_i64()
                .is_some_and(|number| i32::try_from(number).is_ok()),
            (Kind::Integer, _, Value::Float(number)) => number::is_integer(*number),
            (Kind::Number, Some(Format::Float), _) => value
                .as_f64()
                .is_some_and(|number| number.abs() <= f64::from(f32::MAX)),
            _ => true,
        };
        if !in_range {
            let format = match format {
                Some(Format::Int32) => "with format int32",
                Some(Format::Int64) => "with format int64",
                Some(Format::Float) => "with format float",
                _ => "(default format)",
            };
            let text = format!(
                "Checked value must be of type {} {format} in {}",
                node.kind.name(),
                place.text()
            );
            self.tell(FieldError::invalid(self.base.clone(), "", text));
        }
        let Some(checks) = checks else { return };
        if let Some(factor) = checks.multiple_of
            && !is_multiple(value, factor)
        {
            let detail = format!("should be a multiple of {}", shown_bound(value, factor));
            self.invalid(place, value.clone(), &detail);
        }
        if let Some(limit) = checks.minimum {
            let exclusive = checks.exclusive_minimum;
            if exceeds(limit, value, exclusive, std::cmp::Ordering::Less) {
                let words = if exclusive {
                    "greater than"
                } else {
                    "greater than or equal to"
                };
                let detail = format!("should be {words} {}", shown_bound(value, limit));
                self.invalid(place, value.clone(), &detail);
            }
        }
        if let Some(limit) = checks.maximum {
            let exclusive = checks.exclusive_maximum;
            if exceeds(limit, value, exclusive, std::cmp::Ordering::Greater) {
                let words = if exclusive {
                    "less than"
                } else {
                    "less than or equal to"
                };
                let detail = format!("should be {words} {}", shown_bound(value, limit));
                self.invalid(place, value.clone(), &detail);
            }
        }
    }
}

//! Validation of `anyOf`, `oneOf`, `allOf` and `not`.

use super::correlate::Before;
use super::value::{Checker, ValuePath};
use crate::schema::{Checks, Node};
use bareboat_api::{FieldError, Value};
use std::sync::Arc;

impl Checker<'_> {
    /// Checks all compositions and returns the number of passed checks.
    pub(super) fn compositions(
        &mut self,
        checks: &Checks,
        value: &Value,
        old: &Before<'_, '_>,
        place: &ValuePath<'_>,
    ) -> usize {
        let mut passed = 0;
        if !checks.any_of.is_empty() {
            let (valid, best, first) = self.alternatives(&checks.any_of, true, value, old, place);
            if valid == 0 {
                self.composed(place, "must validate at least one schema (anyOf)");
            }
            passed += self.adopt(best).unwrap_or(first);
        }
        if !checks.one_of.is_empty() {
            let (valid, best, first) = self.alternatives(&checks.one_of, false, value, old, place);
            match valid {
                1 => passed += first,
                0 => {
                    self.composed(
                        place,
                        "must validate one and only one schema (oneOf). Found none valid",
                    );
                    passed += self.adopt(best).unwrap_or(0);
                }
                several => {
                    let text = format!(
                        "must validate one and only one schema (oneOf). \
                         Found {several} valid alternatives"
                    );
                    self.composed(place, &text);
                }
            }
        }
        if !checks.all_of.is_empty() {
            let mut valid = 0;
            for branch in &checks.all_of {
                let start = self.errors.len();
                passed += self.check(branch, value, old, place);
                valid += usize::from(self.errors.len() == start);
            }
            if valid != checks.all_of.len() {
                let tail = if valid == 0 { ". None validated" } else { "" };
                self.composed(
                    place,
                    &format!("must validate all the schemas (allOf){tail}"),
                );
            }
        }
        if let Some(branch) = &checks.not {
            let start = self.errors.len();
            self.check(branch, value, old, place);
            if self.errors.len() == start {
                self.composed(place, "must not validate the schema (not)");
            } else {
                self.forget(start);
            }
        }
        passed
    }

    /// Tries alternatives; returns how many pass, the errors of the best failure, and the passed
    /// checks of the first success.
    fn alternatives(
        &mut self,
        branches: &[Arc<Node>],
        first_suffices: bool,
        value: &Value,
        old: &Before<'_, '_>,
        place: &ValuePath<'_>,
    ) -> (usize, Option<(usize, Vec<FieldError>)>, usize) {
        let mut valid = 0;
        let mut first = 0;
        let mut best: Option<(usize, Vec<FieldError>)> = None;
        for branch in branches {
            let start = self.errors.len();
            let passed = self.check(branch, value, old, place);
            if self.errors.len() == start {
                if valid == 0 {
                    first = passed;
                }
                valid += 1;
                best = None;
                if first_suffices {
                    break;
                }
                continue;
            }
            let failures = self.take_back(start);
            if valid == 0 && best.as_ref().is_none_or(|(most, _)| passed > *most) {
                best = Some((passed, failures));
            }
        }
        (valid, best, first)
    }

    fn adopt(&mut self, failures: Option<(usize, Vec<FieldError>)>) -> Option<usize> {
        let (passed, errors) = failures?;
        errors.into_iter().for_each(|error| self.tell(error));
        Some(passed)
    }
}

//! Limits the size of all patterns of a definition together.

use super::props::Props;
use super::validate::versions;
use bareboat_api::{FieldError, FieldPath, Value};
use bareboat_cel::{PatternSize, check_pattern};
use std::collections::HashSet;

/// The maximum number of instructions of all compiled patterns of a definition.
const MAX_INSTRUCTIONS: u64 = 1 << 20;
/// The maximum number of character ranges collected for the classes of all patterns.
const MAX_RANGES: u64 = 1 << 20;

/// Rejects a definition whose patterns are too large together, without compiling them.
pub(super) fn check(crd: &Value) -> Result<(), FieldError> {
    let mut budget = PatternBudget::default();
    for (index, version) in versions(crd).iter().enumerate() {
        let Some(schema) = Props::of_version(version) else {
            continue;
        };
        let mut found = None;
        schema.any(&mut |props| {
            let pattern = props.text("pattern");
            if let Err(detail) = budget.add(pattern) {
                found = Some((pattern, detail));
            }
            found.is_some()
        });
        if let Some((pattern, detail)) = found {
            let path = FieldPath::new("spec.versions").index(index);
            let path = path.child("schema").child("openAPIV3Schema");
            return Err(FieldError::invalid(path, pattern, detail));
        }
    }
    Ok(())
}

/// Sums up the patterns of a definition. Each distinct pattern counts once.
#[derive(Debug, Default)]
struct PatternBudget<'a> {
    seen: HashSet<&'a str>,
    size: PatternSize,
}

impl<'a> PatternBudget<'a> {
    /// Adds a pattern; the error reports an exceeded limit. Invalid patterns count with the work of
    /// parsing them, which is less than their length.
    fn add(&mut self, pattern: &'a str) -> Result<(), String> {
        if !self.seen.insert(pattern) {
            return Ok(());
        }
        let size = check_pattern(pattern).unwrap_or(PatternSize {
            instructions: 0,
            ranges: pattern.len() as u64,
        });
        self.size.instructions += size.instructions;
        self.size.ranges += size.ranges;
        let (found, limit, what) = match self.size.instructions > MAX_INSTRUCTIONS {
            true => (self.size.instructions, MAX_INSTRUCTIONS, "instructions"),
            false => (self.size.ranges, MAX_RANGES, "ranges of characters"),
        };
        if found > limit {
            return Err(format!(
                "the patterns of this definition are too large: up to this one they have {found} \
                 {what} when compiled, and may have {limit}"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add_all(patterns: impl Iterator<Item = String>) -> Result<PatternSize, String> {
        let patterns: Vec<String> = patterns.collect();
        let mut budget = PatternBudget::default();
        for pattern in &patterns {
            budget.add(pattern)?;
        }
        Ok(budget.size)
    }

    #[test]
    fn three_hundred_patterns_of_two_hundred_letters_fit_the_budget() {
        let some = |count: usize| add_all((0..count).map(|n| format!("{n}\\pL{{200}}"))).unwrap();
        let (once, twice) = (some(300), some(600));
        assert!(once.instructions < MAX_INSTRUCTIONS / 8, "{once:?}");
        assert!(
            twice.instructions <= 2 * once.instructions + 600,
            "{once:?} {twice:?}"
        );
    }

    #[test]
    fn the_same_pattern_counts_once() {
        let many = add_all((0..10_000).map(|_| "[a-z]{1000}".to_owned())).unwrap();
        assert!(many.instructions < 2000, "{many:?}");
    }

    #[test]
    fn patterns_that_are_too_large_together_are_refused() {
        let error = add_all((0..2000).map(|n| format!("{n}a{{1000}}"))).unwrap_err();
        assert!(
            error.contains("instructions when compiled, and may have 1048576"),
            "{error}"
        );
        let error = add_all((0..2000).map(|n| format!("{n}[\\pL_]"))).unwrap_err();
        assert!(error.contains("ranges of characters"), "{error}");
    }
}

//! Checks that Rust files start with `//!` and have at most 500 lines, half of them at most 150.

use super::{File, Finding};

/// The maximum number of lines; longer files have more than one subject.
const MOST_LINES: usize = 500;
/// The maximum length of the file in the middle, if files are sorted by length.
const MEDIAN_LINES: usize = 150;

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut lengths = Vec::new();
    for file in files.iter().filter(|file| file.has_extension("rs")) {
        let mut report = |line, what: String| {
            findings.push(Finding {
                path: file.path.clone(),
                line,
                what,
            });
        };
        if !file.text.starts_with("//!") {
            report(
                1,
                "open the file with `//!`: what it does, and what it leaves to others".into(),
            );
        }
        let lines = file.text.lines().count();
        lengths.push(lines);
        if lines > MOST_LINES {
            report(
                0,
                format!("{lines} lines, at most {MOST_LINES}: split it by subject"),
            );
        }
    }
    lengths.sort_unstable();
    let median = lengths.get(lengths.len().saturating_sub(1) / 2);
    if let Some(median) = median.filter(|median| **median > MEDIAN_LINES) {
        findings.push(Finding {
            path: ".".into(),
            line: 0,
            what: format!("the median of Rust files is {median} lines, at most {MEDIAN_LINES}"),
        });
    }
    findings
}

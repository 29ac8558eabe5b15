//! Checks that Rust files start with `//!` and have at most 500 lines.

use super::{File, Finding};

/// The maximum number of lines; longer files have more than one subject.
const MOST_LINES: usize = 500;

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
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
        if lines > MOST_LINES {
            report(
                0,
                format!("{lines} lines, at most {MOST_LINES}: split it by subject"),
            );
        }
    }
    findings
}

//! Tables of known differences in documents, such as `docs/differences.md`.

use crate::vectors::workspace;

/// A row of the table.
struct Row {
    step: String,
    paths: Vec<String>,
    /// Which of the paths still differ.
    used: Vec<bool>,
}

/// The rows about one file, and differences that they do not cover.
pub(crate) struct Ledger {
    document: &'static str,
    file: String,
    rows: Vec<Row>,
    unlisted: Vec<String>,
}

impl Ledger {
    /// Reads the rows `| file | step | where | reason |` of a file in a document.
    pub(crate) fn read(document: &'static str, file: &str) -> Ledger {
        let path = workspace().join(document);
        let text = std::fs::read_to_string(path).expect("the table of differences can be read");
        let mut rows = Vec::new();
        for line in text.lines().filter(|line| line.starts_with("| ")) {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            if cells.len() != 4 || cells[0] != file {
                continue;
            }
            assert!(cells[3].len() > 3, "this row gives no reason: {line}");
            let paths: Vec<String> = cells[2]
                .split(", ")
                .map(|path| path.trim_matches('`').to_owned())
                .collect();
            rows.push(Row {
                step: cells[1].to_owned(),
                used: vec![false; paths.len()],
                paths,
            });
        }
        Ledger {
            document,
            file: file.to_owned(),
            rows,
            unlisted: Vec::new(),
        }
    }

    /// Compares the differences of a step with those listed.
    pub(crate) fn check(&mut self, step: &str, found: Vec<(String, String)>) {
        let mut rest = Vec::new();
        for (path, what) in found {
            let mut listed = false;
            for row in self.rows.iter_mut().filter(|row| matches(&row.step, step)) {
                for (known, used) in row.paths.iter().zip(&mut row.used) {
                    if covers(known, &path) {
                        *used = true;
                        listed = true;
                    }
                }
            }
            if !listed {
                rest.push((path, what));
            }
        }
        if rest.is_empty() {
            return;
        }
        let paths: Vec<String> = rest.iter().map(|(path, _)| format!("`{path}`")).collect();
        let mut text = format!("| {} | {step} | {} | … |", self.file, paths.join(", "));
        for (path, what) in rest {
            text.push_str(&format!("\n      {path}: {what}"));
        }
        self.unlisted.push(text);
    }

    /// Fails if a difference is not listed, or a listed one no longer occurs.
    pub(crate) fn finish(self) {
        let document = self.document;
        let problems = self.problems();
        assert!(
            problems.is_empty(),
            "{} differences are not in {document}, or no longer are:\n{}",
            problems.len(),
            problems.join("\n")
        );
    }

    /// Returns unlisted differences, and listed ones that no longer occur.
    pub(crate) fn problems(self) -> Vec<String> {
        let mut problems = self.unlisted;
        for row in &self.rows {
            for (path, used) in row.paths.iter().zip(&row.used) {
                if !used {
                    problems.push(format!(
                        "no longer differs: {} / {} / {path}",
                        self.file, row.step
                    ));
                }
            }
        }
        problems
    }
}

/// Returns whether a row is about a step; `*` matches anything.
fn matches(pattern: &str, step: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == step;
    };
    let Some(left) = step.strip_prefix(start) else {
        return false;
    };
    rest.is_empty()
        || (0..=left.len()).any(|at| left.is_char_boundary(at) && matches(rest, &left[at..]))
}

/// Returns whether a listed path covers another: itself and everything below, ignoring indices.
fn covers(known: &str, path: &str) -> bool {
    if path == known {
        return true;
    }
    let path = without_indices(path);
    let known = without_indices(known);
    path.strip_prefix(&known)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn without_indices(path: &str) -> String {
    let mut out = String::new();
    let mut inside = false;
    for character in path.chars() {
        match character {
            '[' => inside = true,
            ']' => inside = false,
            _ if inside => {}
            other => out.push(other),
        }
    }
    out
}

//! Counts the lines of the examples and prints them as a table. An example is an argument for the library as long as it is small.

use super::{File, Finding};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The most lines of an example.
const MOST: usize = 300;
/// Examples with a limit of their own.
const OTHER: &[(&str, usize)] = &[("hello", 100), ("hello-extended", 200)];

/// Returns the lines of Rust of every example that are neither blank nor comment, without tests.
pub(super) fn count(files: &[File]) -> BTreeMap<String, usize> {
    let mut lines = BTreeMap::new();
    for file in files.iter().filter(|file| file.has_extension("rs")) {
        let mut parts = file.path.iter().filter_map(|part| part.to_str());
        let place = (parts.next(), parts.next(), parts.next());
        if let (Some("examples"), Some(name), Some("src")) = place {
            *lines.entry(name.to_owned()).or_default() += code_lines(&file.text);
        }
    }
    lines
}

fn code_lines(text: &str) -> usize {
    // Unit tests are at the end of a file.
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
    code.lines().filter(is_code).count()
}

fn limit(name: &str) -> usize {
    let other = OTHER.iter().find(|(example, _)| *example == name);
    other.map_or(MOST, |(_, lines)| *lines)
}

/// Finds examples that are too long.
pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let long = |(name, lines): (String, usize)| {
        let most = limit(&name);
        (lines > most).then(|| Finding {
            path: PathBuf::from("examples").join(name),
            line: 0,
            what: format!("{lines} lines of code, at most {most} are allowed"),
        })
    };
    count(files).into_iter().filter_map(long).collect()
}

/// Prints the table.
pub(super) fn print(files: &[File]) {
    println!("{:<20} {:>5} {:>5}", "example", "lines", "most");
    for (name, lines) in count(files) {
        println!("{name:<20} {lines:>5} {:>5}", limit(&name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, lines: usize) -> File {
        let path = PathBuf::from(path);
        let text = "//! Text.\n\n    // More.\n".to_owned() + &"let a = 1;\n".repeat(lines);
        File { path, text }
    }

    #[test]
    fn code_is_counted_and_limited() {
        let files = [
            file("examples/hello/src/main.rs", 60),
            file("examples/hello/src/more.rs", 41),
            file("examples/hello/tests/it.rs", 500),
            file("examples/blog/src/main.rs", 300),
        ];
        let counted: Vec<_> = count(&files).into_values().collect();
        assert_eq!(counted, [300, 101]);
        let findings = check(&files);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].what.starts_with("101 lines"), "{findings:?}");
    }
}

//! Compares the output of commands with what a page shows.

/// The sign for "anything".
const ANY: &str = "…";

/// Returns whether the output is as expected.
pub(crate) fn matches(expected: &str, output: &str) -> bool {
    let expected: Vec<String> = lines(expected);
    let output: Vec<String> = lines(output);
    lines_match(&expected, &output)
}

/// Returns the lines of the expected output that no line of the output matches.
pub(crate) fn missing(expected: &str, output: &str) -> Vec<String> {
    let output = lines(output);
    let mut expected = lines(expected);
    expected.retain(|line| line != ANY && !output.iter().any(|found| line_matches(line, found)));
    expected
}

/// Splits text into lines with single spaces, without empty lines at the ends and without what bash says about its jobs.
fn lines(text: &str) -> Vec<String> {
    let text = text.trim_matches(['\n', '\r', ' ']);
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut lines: Vec<String> = text.lines().map(words).collect();
    lines.retain(|line| !is_job_notice(line));
    lines
}

/// Returns whether a line says that a job of bash ended, such as `[2]+ Terminated ./server`. When it is printed depends on chance.
fn is_job_notice(line: &str) -> bool {
    let Some((number, rest)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
        return false;
    };
    let states = ["Terminated", "Done", "Exit", "Killed", "Interrupt"];
    let state = rest.trim_start_matches(['+', '-']).trim_start();
    number.parse::<u32>().is_ok() && states.iter().any(|it| state.starts_with(it))
}

fn lines_match(expected: &[String], output: &[String]) -> bool {
    match expected.split_first() {
        None => output.is_empty(),
        Some((first, rest)) if first == ANY => {
            (0..=output.len()).any(|skipped| lines_match(rest, &output[skipped..]))
        }
        Some((first, rest)) => match output.split_first() {
            Some((line, others)) => line_matches(first, line) && lines_match(rest, others),
            None => false,
        },
    }
}

fn line_matches(expected: &str, line: &str) -> bool {
    let expected = without_durations(expected);
    let line = without_durations(line);
    let mut parts = expected.split(ANY);
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Replaces every word that is a duration.
fn without_durations(line: &str) -> String {
    let plain = |word| if is_duration(word) { "5s" } else { word };
    line.split(' ').map(plain).collect::<Vec<_>>().join(" ")
}

/// Returns whether a word is a duration as kubectl prints it, such as `5s`, `2m10s` or `3d4h`.
fn is_duration(word: &str) -> bool {
    let mut rest = word;
    let mut parts = 0;
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let unit = ["ms", "s", "m", "h", "d", "y"]
            .iter()
            .find(|unit| rest[digits..].starts_with(**unit));
        match unit {
            Some(unit) if digits > 0 => rest = &rest[digits + unit.len()..],
            _ => return false,
        }
        parts += 1;
    }
    parts > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_and_durations_do_not_matter() {
        assert!(matches(
            "NAME  AGE\na     5s\n",
            "NAME   AGE\na      1m2s\n\n"
        ));
        assert!(!matches("NAME AGE\na 5s\n", "NAME AGE\na ok\n"));
        assert!(!matches("a\n", "a\nb\n"));
    }

    #[test]
    fn the_ellipsis_is_any_text_or_any_lines() {
        assert!(matches("uid: …\n", "uid: 12-34\n"));
        assert!(matches("a … c … e", "a b c d e"));
        assert!(!matches("a … c", "a b d"));
        assert!(matches("a\n…\nd\n", "a\nb\nc\nd\n"));
        assert!(matches("…\nd\n…\n", "d\n"));
        assert!(!matches("…\nd\n", "d\ne\n"));
    }

    #[test]
    fn notices_about_jobs_are_left_out() {
        assert!(matches("a\n", "[2]+  Terminated   ./server\na\n"));
        assert!(!matches("a\n", "[2] rows\na\n"));
    }

    #[test]
    fn missing_lines_are_found_in_any_order() {
        assert_eq!(missing("b\n…\na 7s\n", "a 1s\nx\n"), ["b"]);
    }
}

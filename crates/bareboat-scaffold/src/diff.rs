//! A unified diff of two texts, for people: what `bareboat add` is about to change.

/// Lines around a change.
const CONTEXT: usize = 3;

/// Returns the diff of a file; `before` is `None` for a new one.
pub fn unified(path: &str, before: Option<&str>, after: &str) -> String {
    let old: Vec<&str> = before.unwrap_or_default().lines().collect();
    let new: Vec<&str> = after.lines().collect();
    let mut out = match before {
        Some(_) => format!("--- a/{path}\n+++ b/{path}\n"),
        None => format!("--- /dev/null\n+++ b/{path}\n"),
    };
    let lines = compare(&old, &new);
    let changed = |index: usize| !matches!(lines[index], Line::Same(_));
    let (mut at, mut old_line, mut new_line) = (0, 1, 1);
    while at < lines.len() {
        let near = |from: usize| (from..lines.len().min(from + CONTEXT + 1)).any(changed);
        if !near(at) {
            (at, old_line, new_line) = (at + 1, old_line + 1, new_line + 1);
            continue;
        }
        // A hunk goes on while another change is within reach.
        let mut end = at;
        let mut last = at;
        while end < lines.len() && (end <= last + 2 * CONTEXT || changed(end)) {
            if changed(end) {
                last = end;
            }
            end += 1;
        }
        let end = lines.len().min(last + CONTEXT + 1);
        let hunk = &lines[at..end];
        let olds = hunk
            .iter()
            .filter(|line| !matches!(line, Line::Added(_)))
            .count();
        let news = hunk
            .iter()
            .filter(|line| !matches!(line, Line::Removed(_)))
            .count();
        let start = |line: usize, count: usize| if count == 0 { line - 1 } else { line };
        out.push_str(&format!(
            "@@ -{},{olds} +{},{news} @@\n",
            start(old_line, olds),
            start(new_line, news)
        ));
        for line in hunk {
            let (sign, text) = match line {
                Line::Same(text) => (' ', text),
                Line::Removed(text) => ('-', text),
                Line::Added(text) => ('+', text),
            };
            out.push(sign);
            out.push_str(text);
            out.push('\n');
        }
        (at, old_line, new_line) = (end, old_line + olds, new_line + news);
    }
    out
}

enum Line<'t> {
    Same(&'t str),
    Removed(&'t str),
    Added(&'t str),
}

/// Compares two texts by their longest common subsequence. Files of projects are short.
fn compare<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<Line<'t>> {
    let mut longest = vec![vec![0usize; new.len() + 1]; old.len() + 1];
    for (i, left) in old.iter().enumerate().rev() {
        for (j, right) in new.iter().enumerate().rev() {
            longest[i][j] = match left == right {
                true => longest[i + 1][j + 1] + 1,
                false => longest[i + 1][j].max(longest[i][j + 1]),
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut lines = Vec::new();
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            lines.push(Line::Same(old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && longest[i + 1][j] >= longest[i][j + 1]) {
            lines.push(Line::Removed(old[i]));
            i += 1;
        } else {
            lines.push(Line::Added(new[j]));
            j += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_have_context() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let new = "1\n2\n3\n4\nfive\n6\n7\n8\n9\n";
        let wanted = "--- a/f\n+++ b/f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n";
        assert_eq!(unified("f", Some(old), new), wanted);
    }

    #[test]
    fn a_new_file_is_all_added() {
        assert_eq!(
            unified("f", None, "a\nb\n"),
            "--- /dev/null\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\n+b\n"
        );
    }

    #[test]
    fn a_line_at_the_end_is_added() {
        assert_eq!(
            unified("f", Some("a\n"), "a\nb\n"),
            "--- a/f\n+++ b/f\n@@ -1,1 +1,2 @@\n a\n+b\n"
        );
    }
}

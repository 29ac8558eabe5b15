//! Checks for banned words in comments, messages and pages.

use super::{File, Finding};

/// Banned words, and what to write instead.
const BANNED: &[(&str, &str)] = &[
    ("whoever", "name the client, user or caller"),
    ("those whom", "name the client, user or server"),
    ("in the name of", "\"as\" or \"on behalf of\""),
    ("stumble", "\"fail\", with the reason"),
    ("stumbles", "\"fails\", with the reason"),
    ("stumbled", "\"failed\", with the reason"),
    ("nobody in particular", "\"anonymous\""),
];

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    // The list itself and its tests spell the words out.
    let files = files
        .iter()
        .filter(|file| !file.path.starts_with("xtask/src/tidy"));
    for file in files {
        for (index, line) in file.text.lines().enumerate() {
            let line = line.to_lowercase();
            for (word, instead) in BANNED.iter().filter(|(word, _)| has_word(&line, word)) {
                findings.push(Finding {
                    path: file.path.clone(),
                    line: index + 1,
                    what: format!("\"{word}\": write {instead}"),
                });
            }
        }
    }
    findings
}

/// Returns whether a line contains a word or phrase, not as part of a longer word.
pub(super) fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        let letter = |neighbour: Option<char>| neighbour.is_some_and(char::is_alphanumeric);
        !letter(before) && !letter(after)
    })
}

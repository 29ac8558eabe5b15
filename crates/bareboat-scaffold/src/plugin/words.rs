//! Text of schemas in a script: names of flags, quoted words, one line of help.

/// Returns the name of a flag for a field: `deploymentName` is `deployment-name`. `None` if no flag can be named so.
pub(super) fn flag_name(field: &str) -> Option<String> {
    let mut name = String::new();
    let mut previous = '-';
    let mut letters = field.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            'A'..='Z' => {
                // A run of capitals is one word: `podIPs` is `pod-ips`, `HTTPPort` is `http-port`.
                let follows = letters.peek().is_some_and(char::is_ascii_lowercase);
                let starts = previous.is_ascii_lowercase() || previous.is_ascii_digit();
                let plural = letters.peek() == Some(&'s') && previous.is_ascii_uppercase();
                if starts || (previous.is_ascii_uppercase() && follows && !plural) {
                    name.push('-');
                }
                name.push(letter.to_ascii_lowercase());
            }
            'a'..='z' | '0'..='9' => name.push(letter),
            '_' | '-' | '.' => name.push('-'),
            _ => return None,
        }
        previous = letter;
    }
    let name = name.trim_matches('-').to_owned();
    (!name.is_empty()).then_some(name)
}

/// Quotes a word for a shell.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Returns the first sentence of a description in one line without control characters.
pub(super) fn first_sentence(text: &str) -> String {
    let text: String = text
        .chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect();
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    let end = line.find(". ").unwrap_or(line.len());
    let line = line[..end].trim_end_matches('.');
    match line.char_indices().nth(160) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}

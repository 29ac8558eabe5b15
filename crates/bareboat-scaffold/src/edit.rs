//! Edits of text that a user may have changed: they find a line by how it begins, or fail with what to write by hand.

/// A change of a file that could not be made.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "{path} has no line that begins with {anchor:?}; write this there by hand, and run the command again:\n{text}"
)]
pub struct EditError {
    /// The file.
    pub path: String,
    /// The line that was looked for.
    pub anchor: String,
    /// What would have been added.
    pub text: String,
}

/// Adds lines after the last line that begins with `anchor`. Text that is there already is not added again.
pub(crate) fn after_last(
    path: &str,
    text: &str,
    anchor: &str,
    lines: &str,
) -> Result<String, EditError> {
    if text.contains(lines) {
        return Ok(text.to_owned());
    }
    let mut at = None;
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        offset += line.len();
        if line.trim_start().starts_with(anchor) {
            at = Some(offset);
        }
    }
    match at {
        Some(at) => Ok([&text[..at], lines, &text[at..]].concat()),
        None => Err(missing(path, anchor, lines)),
    }
}

/// Adds an item at the end of the list that starts on the first line with `opening`, such as `vec![`, and ends with `]`.
pub(crate) fn into_list(
    path: &str,
    text: &str,
    opening: &str,
    item: &str,
) -> Result<String, EditError> {
    let found = text.find(opening).and_then(|start| {
        let inside = start + opening.len();
        let end = inside + text[inside..].find(']')?;
        Some((inside, end))
    });
    let Some((inside, end)) = found else {
        return Err(missing(path, opening, item));
    };
    let list = &text[inside..end];
    if list.split(',').any(|known| known.trim() == item) {
        return Ok(text.to_owned());
    }
    let list_end = inside + list.trim_end().trim_end_matches(',').len();
    Ok([&text[..list_end], ", ", item, &text[end..]].concat())
}

/// Adds lines before the first line that begins with `anchor`.
pub(crate) fn before(
    path: &str,
    text: &str,
    anchor: &str,
    lines: &str,
) -> Result<String, EditError> {
    if text.contains(lines) {
        return Ok(text.to_owned());
    }
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with(anchor) {
            return Ok([&text[..offset], lines, &text[offset..]].concat());
        }
        offset += line.len();
    }
    Err(missing(path, anchor, lines))
}

fn missing(path: &str, anchor: &str, text: &str) -> EditError {
    EditError {
        path: path.to_owned(),
        anchor: anchor.to_owned(),
        text: text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn lines_are_added_once() {
        let text = "mod a;\nmod b;\n\nfn x() {}\n";
        let added = after_last("f", text, "mod ", "mod c;\n").unwrap();
        assert_eq!(added, "mod a;\nmod b;\nmod c;\n\nfn x() {}\n");
        assert_eq!(after_last("f", &added, "mod ", "mod c;\n").unwrap(), added);
        assert!(
            after_last("f", text, "use ", "use c;\n")
                .unwrap_err()
                .to_string()
                .contains("use c;")
        );
        assert_eq!(
            before("f", text, "fn x", "// y\n").unwrap(),
            "mod a;\nmod b;\n\n// y\nfn x() {}\n"
        );
    }

    #[test]
    fn items_are_added_to_lists() {
        assert_eq!(
            into_list("f", "vec![a()]", "vec![", "b()").unwrap(),
            "vec![a(), b()]"
        );
        assert_eq!(
            into_list("f", "vec![\n    a(),\n]", "vec![", "b()").unwrap(),
            "vec![\n    a(), b()]"
        );
        assert_eq!(
            into_list("f", "vec![a()]", "vec![", "a()").unwrap(),
            "vec![a()]"
        );
    }
}

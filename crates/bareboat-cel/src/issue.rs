//! Compile errors and their positions, printed in cel-go's format.

use std::fmt;

/// A compile error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// The message, without the position.
    pub message: String,
    /// The line, counted from one.
    pub line: usize,
    /// The column in characters, counted from zero.
    pub column: usize,
    snippet: Option<String>,
}

impl Issue {
    pub(crate) fn new(source: &str, offset: usize, message: impl Into<String>) -> Issue {
        let mut offset = offset.min(source.len());
        while !source.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &source[..offset];
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line_text = source[start..].split('\n').next().unwrap_or_default();
        Issue {
            message: message.into(),
            line: before.matches('\n').count() + 1,
            column: before[start..].chars().count(),
            snippet: (line_text.len() <= MAX_SNIPPET && !source.is_empty())
                .then(|| line_text.replace('\t', " ")),
        }
    }

    /// Returns an issue about the expression as a whole.
    pub(crate) fn nowhere(message: impl Into<String>) -> Issue {
        Issue {
            message: message.into(),
            line: 0,
            column: 0,
            snippet: None,
        }
    }
}

/// The maximum length of a source line that messages repeat.
const MAX_SNIPPET: usize = 16384;

impl fmt::Display for Issue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // An empty expression has no first column to point at.
        let column = self.column + usize::from(self.snippet.is_some() || self.column > 0);
        let line = self.line;
        write!(f, "ERROR: <input>:{line}:{column}: {}", self.message)?;
        let Some(snippet) = &self.snippet else {
            return Ok(());
        };
        write!(f, "\n | {snippet}\n | ")?;
        // Wide characters get wide marks so that the caret is under the right character.
        let mut characters = snippet.chars();
        for character in characters.by_ref().take(self.column) {
            f.write_str(if character.is_ascii() { "." } else { "．" })?;
        }
        f.write_str(match characters.next() {
            Some(character) if !character.is_ascii() => "＾",
            _ => "^",
        })
    }
}

/// The compile errors of an expression; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issues(pub(crate) Vec<Issue>);

impl Issues {
    /// Returns the issues in the order of their positions.
    pub fn iter(&self) -> impl Iterator<Item = &Issue> {
        self.0.iter()
    }
}

impl fmt::Display for Issues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, issue) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{issue}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Issues {}

//! The result of a text parser: a value with strict findings, or an error with its position.

use bareboat_api::Value;
use std::fmt;

/// The maximum number of findings reported for one document.
pub(crate) const MAX_FINDINGS: usize = 100;

/// A parsed document.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// The value; of members with the same key, the last one.
    pub value: Value,
    /// The duplicate keys, as texts such as `duplicate field "spec.foo"`.
    pub duplicates: Vec<String>,
}

/// A syntax error and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The position in bytes.
    pub offset: usize,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The message, without the position.
    pub message: String,
}

impl ParseError {
    /// Returns an error at a position of a document.
    pub(crate) fn at(document: &[u8], offset: usize, message: impl Into<String>) -> ParseError {
        let before = &document[..offset.min(document.len())];
        let line_start = before
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |index| index + 1);
        // Every byte that does not continue a UTF-8 sequence starts a character.
        let characters = before[line_start..]
            .iter()
            .filter(|&&byte| byte & 0xC0 != 0x80)
            .count();
        ParseError {
            offset,
            line: 1 + before.iter().filter(|&&byte| byte == b'\n').count(),
            column: 1 + characters,
            message: message.into(),
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ParseError {
            line,
            column,
            message,
            ..
        } = self;
        write!(f, "line {line}, column {column}: {message}")
    }
}

impl std::error::Error for ParseError {}

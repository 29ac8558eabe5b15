//! What a reader of text gives back: a value with strict findings, or the place where it gave up.

use bareboat_api::Value;
use std::fmt;

/// The most findings one document reports; the rest would not help anybody.
pub(crate) const MAX_FINDINGS: usize = 100;

/// A document that was understood.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// The value; of members with the same key the last one.
    pub value: Value,
    /// What strict decoding objects to, as ready texts such as `duplicate field "spec.foo"`.
    pub duplicates: Vec<String>,
}

/// A document that was not understood, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// How many bytes were understood.
    pub offset: usize,
    /// The line of the fault, from 1.
    pub line: usize,
    /// The column of the fault in characters, from 1.
    pub column: usize,
    /// What is wrong there.
    pub message: String,
}

impl ParseError {
    /// A fault at a place in a document.
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

//! What a build without the feature `yaml` says about YAML that is not JSON.

use crate::{ParseError, Parsed, json};

/// Reads a document that is JSON.
pub(super) fn first_document(text: &str) -> Result<Parsed, ParseError> {
    json::parse(text.as_bytes()).map_err(|error| {
        let why = format!("only JSON is read, because the feature `yaml` is off: {error}");
        ParseError::at(text.as_bytes(), 0, why)
    })
}

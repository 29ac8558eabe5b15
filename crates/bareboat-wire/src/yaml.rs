//! YAML as Kubernetes reads and prints it: YAML 1.1 scalars, merge keys, bounded aliases.
//!
//! Only the first document of a stream is read. Where to split a stream of many is the business
//! of clients.

mod key;
mod load;
mod print;
mod scalar;

pub use print::print;

use crate::{ParseError, Parsed, json};

/// Reads the first document of a YAML stream; JSON is YAML too.
pub fn parse(document: &[u8]) -> Result<Parsed, ParseError> {
    // Most bodies sent as YAML are JSON in truth. The fast reader takes those it fully approves
    // of; everything else, and every complaint, comes from the YAML reader.
    let first = document.iter().find(|byte| !byte.is_ascii_whitespace());
    if first == Some(&b'{')
        && let Ok(parsed) = json::parse(document)
        && parsed.duplicates.is_empty()
    {
        return Ok(parsed);
    }
    let text = std::str::from_utf8(document).map_err(|error| {
        ParseError::at(document, error.valid_up_to(), "the text is not valid UTF-8")
    })?;
    load::first_document(text)
}

#[cfg(test)]
mod tests;

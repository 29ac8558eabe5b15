//! YAML in Kubernetes' dialect: YAML 1.1 scalars, merge keys, bounded aliases.
//!
//! Only the first document of a stream is parsed. Clients split streams of several documents.

#[cfg(feature = "yaml")]
mod key;
#[cfg(feature = "yaml")]
mod load;
mod print;
mod scalar;
#[cfg(not(feature = "yaml"))]
mod unread;

#[cfg(not(feature = "yaml"))]
use unread as load;

pub use print::print;

use crate::{ParseError, Parsed, json};

/// Parses the first document of a YAML stream; JSON is YAML too.
pub fn parse(document: &[u8]) -> Result<Parsed, ParseError> {
    // Most bodies sent as YAML are JSON. The fast JSON parser handles those that are fully valid;
    // everything else, and every error, comes from the YAML parser.
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

#[cfg(all(test, feature = "yaml"))]
mod tests;

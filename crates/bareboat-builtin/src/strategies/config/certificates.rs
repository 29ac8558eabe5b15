//! Warnings about Secrets of type `kubernetes.io/tls`: certificate or key missing, unreadable or not matching.
//!
//! Texts follow X509KeyPair of upstream's crypto/tls.

mod pair;
#[cfg(test)]
mod tests;

use crate::reach::Reach;
use bareboat_api::{Object, Value};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Maximum number of block types listed in a warning.
const MAX_TOLD: usize = 16;

/// Returns warnings about a certificate or key that is missing, unreadable or does not match.
pub(super) fn warnings(secret: &Object) -> Vec<String> {
    if secret.value().text(&["type"]) != "kubernetes.io/tls" {
        return Vec::new();
    }
    let decoded = |key: &str| {
        let text = secret.at(&["data", key]).and_then(Value::as_str);
        let bytes = STANDARD.decode(text.unwrap_or("")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let problem = judge(&decoded("tls.crt"), &decoded("tls.key"));
    problem.err().into_iter().collect()
}

fn judge(certificate: &str, key: &str) -> Result<(), String> {
    let certificate = find_certificate(certificate)?;
    let key = find_key(key)?;
    pair::check(&certificate, &key).map_err(str::to_owned)
}

fn find_certificate(text: &str) -> Result<Vec<u8>, String> {
    let blocks = Blocks(text);
    let mut skipped = Vec::new();
    for (name, content) in blocks {
        if name == "CERTIFICATE" {
            return Ok(content);
        }
        skip(&mut skipped, name);
    }
    Err(match skipped.as_slice() {
        [] => "tls: failed to find any PEM data in certificate input".to_owned(),
        [one] if one.ends_with("PRIVATE KEY") => {
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched".to_owned()
        }
        several => format!(
            "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the following types: [{}]",
            several.join(" ")
        ),
    })
}

fn find_key(text: &str) -> Result<Vec<u8>, String> {
    let mut skipped = Vec::new();
    for (name, content) in Blocks(text) {
        if name == "PRIVATE KEY" || name.ends_with(" PRIVATE KEY") {
            return Ok(content);
        }
        skip(&mut skipped, name);
    }
    Err(match skipped.as_slice() {
        [] => "tls: failed to find any PEM data in key input".to_owned(),
        ["CERTIFICATE"] => {
            "tls: found a certificate rather than a key in the PEM for the private key".to_owned()
        }
        several => format!(
            "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks of the following types: [{}]",
            several.join(" ")
        ),
    })
}

fn skip<'t>(skipped: &mut Vec<&'t str>, name: &'t str) {
    if skipped.len() < MAX_TOLD {
        skipped.push(name);
    }
}

/// Iterates over the well-formed PEM blocks of a text, with their types.
struct Blocks<'t>(&'t str);

impl<'t> Iterator for Blocks<'t> {
    type Item = (&'t str, Vec<u8>);

    fn next(&mut self) -> Option<Self::Item> {
        while let Some((line, rest)) = next_line(self.0) {
            self.0 = rest;
            let name = line
                .trim_end()
                .strip_prefix("-----BEGIN ")
                .and_then(|rest| rest.strip_suffix("-----"));
            let Some(name) = name else { continue };
            if let Some((content, rest)) = content(rest, name) {
                self.0 = rest;
                return Some((name, content));
            }
        }
        None
    }
}

fn next_line(text: &str) -> Option<(&str, &str)> {
    match text.is_empty() {
        true => None,
        false => Some(text.split_once('\n').unwrap_or((text, ""))),
    }
}

/// Decodes a block of the given type; returns its content and the rest of the text.
fn content<'t>(mut text: &'t str, name: &str) -> Option<(Vec<u8>, &'t str)> {
    let mut content = String::new();
    while let Some((line, rest)) = next_line(text) {
        text = rest;
        let line = line.trim();
        if line.starts_with("-----BEGIN ") {
            return None;
        }
        if let Some(end) = line.strip_prefix("-----END ") {
            let ended = end.strip_suffix("-----") == Some(name);
            let content = STANDARD.decode(&content).ok().filter(|_| ended)?;
            return Some((content, rest));
        }
        // PEM headers describe encryption and are ignored.
        if !line.contains(':') {
            content.push_str(line);
        }
    }
    None
}

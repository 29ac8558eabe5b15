//! The rules for URLs of issuers: https, with only a host, a port and a path.

use crate::strict::Findings;
use bareboat_api::{FieldError, FieldPath};

/// Checks the URL of an issuer or of its discovery document.
pub(crate) fn check(url: &str, path: &FieldPath, findings: &mut Findings) {
    let mut wrong =
        |why: &str| findings.add(FieldError::invalid(path.clone(), url, why.to_owned()));
    let Some((scheme, rest)) = url.split_once("://") else {
        return wrong("URL scheme must be https");
    };
    if scheme != "https" {
        wrong("URL scheme must be https");
    }
    if url.chars().any(|c| c.is_control() || c == ' ') {
        wrong("URL must not contain spaces or control characters");
    }
    let (before_fragment, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (before_query, query) = before_fragment
        .split_once('?')
        .unwrap_or((before_fragment, ""));
    let authority = before_query.split('/').next().unwrap_or("");
    if authority.contains('@') {
        wrong("URL must not contain a username or password");
    }
    if authority.is_empty() {
        wrong("URL must contain a host");
    }
    if !query.is_empty() {
        wrong("URL must not contain a query");
    }
    if !fragment.is_empty() {
        wrong("URL must not contain a fragment");
    }
}

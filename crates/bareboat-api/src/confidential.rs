//! Which resources carry credentials.

/// Returns whether requests for a resource, or their answers, carry credentials: secrets and tokens.
pub fn is_confidential(group: &str, resource: &str, subresource: &str) -> bool {
    match (group, resource) {
        ("", "secrets") => true,
        ("", "serviceaccounts") => subresource == "token",
        ("authentication.k8s.io", "tokenreviews") => true,
        _ => false,
    }
}

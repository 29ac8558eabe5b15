//! What the steps of a request read from its head: its ID. Credentials are removed here.

use crate::authn::{self, CredentialHeaders};
use http::{HeaderMap, HeaderName, header};
use std::sync::Arc;

/// The header with the ID of a request.
pub(super) const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// Removes credentials, because no later step needs them.
pub(super) fn without_credentials(
    known: &CredentialHeaders,
    mut headers: Arc<HeaderMap>,
) -> Arc<HeaderMap> {
    let secret = |name: &str| known.hold(name);
    let (mut has_protocol, mut has_secret) = (false, false);
    for name in headers.keys() {
        has_protocol |= *name == header::SEC_WEBSOCKET_PROTOCOL;
        has_secret |= secret(name.as_str());
    }
    if has_protocol {
        authn::hide_bearer_protocol(Arc::make_mut(&mut headers));
    }
    if !has_secret {
        return headers;
    }
    let kept = headers.iter().filter(|(name, _)| !secret(name.as_str()));
    Arc::new(
        kept.map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
    )
}

/// Returns the client's ID of the request, or a new one.
pub(super) fn audit_id(headers: &HeaderMap) -> Arc<str> {
    let given = headers.get(AUDIT_ID).and_then(|id| id.to_str().ok());
    match given {
        Some(id) if !id.is_empty() && id.len() <= 64 => Arc::from(id),
        _ => {
            let mut text = uuid::Uuid::encode_buffer();
            let id = uuid::Uuid::new_v4().hyphenated();
            Arc::from(&*id.encode_lower(&mut text))
        }
    }
}

//! What the steps of a request read from its head: its ID. Credentials are removed here.

use crate::authn::{self, CredentialHeaders};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use smallvec::SmallVec;
use std::sync::Arc;

/// The header with the ID of a request.
pub(super) const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// Removes credentials, because no later step needs them.
pub(super) fn without_credentials(
    known: &CredentialHeaders,
    mut headers: Arc<HeaderMap>,
) -> Arc<HeaderMap> {
    let secret = |name: &str| known.hold(name);
    let mut has_protocol = false;
    let mut secrets = SmallVec::<[HeaderName; 2]>::new();
    for name in headers.keys() {
        has_protocol |= *name == header::SEC_WEBSOCKET_PROTOCOL;
        if secret(name.as_str()) {
            secrets.push(name.clone());
        }
    }
    if has_protocol {
        authn::hide_bearer_protocol(Arc::make_mut(&mut headers));
    }
    if !secrets.is_empty() {
        // Only streams keep a second reference to the headers. Without one, nothing is copied here.
        let headers = Arc::make_mut(&mut headers);
        for name in &secrets {
            headers.remove(name);
        }
    }
    headers
}

/// What a client wants of an answer: the headers that choose the form of a Status. The others are those of the request
/// alone, so that credentials are removed from them and not from a copy.
pub(super) struct Wanted {
    accept: SmallVec<[HeaderValue; 1]>,
    agent: Option<HeaderValue>,
}

impl Wanted {
    pub(super) fn of(headers: &HeaderMap) -> Wanted {
        Wanted {
            accept: headers.get_all(header::ACCEPT).iter().cloned().collect(),
            agent: headers.get(header::USER_AGENT).cloned(),
        }
    }

    pub(super) fn into_headers(self) -> HeaderMap {
        let accept = self.accept.into_iter().map(|it| (header::ACCEPT, it));
        let agent = self.agent.into_iter().map(|it| (header::USER_AGENT, it));
        let mut headers = HeaderMap::new();
        for (name, value) in accept.chain(agent) {
            headers.append(name, value);
        }
        headers
    }
}

/// Returns the client's ID of the request, or a new one.
pub(super) fn audit_id(headers: &HeaderMap) -> Arc<str> {
    let given = headers.get(AUDIT_ID).and_then(|id| id.to_str().ok());
    match given {
        Some(id) if !id.is_empty() && id.len() <= 64 => Arc::from(id),
        _ => {
            let mut text = uuid::Uuid::encode_buffer();
            let id = crate::random::uuid().hyphenated();
            Arc::from(&*id.encode_lower(&mut text))
        }
    }
}

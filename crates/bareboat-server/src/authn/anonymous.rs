//! Requests without credentials: the user `system:anonymous`.

use super::{Authenticator, BadCredentials, Evidence, anonymous};
use arc_swap::ArcSwap;
use bareboat_api::AnonymousRule;
use bareboat_api::kind::{BoxFuture, User};
use http::header;
use std::sync::Arc;

/// Which requests without credentials are accepted. The rule can be replaced while the server runs.
#[derive(Clone, Debug, Default)]
pub struct AnonymousAccess(Arc<ArcSwap<AnonymousRule>>);

impl AnonymousAccess {
    /// Returns the default: only health and version are public.
    pub fn new() -> AnonymousAccess {
        AnonymousAccess::default()
    }

    /// Uses another rule from the next request on.
    pub fn set(&self, rule: AnonymousRule) {
        self.0.store(Arc::new(rule));
    }

    /// Returns whether a request without credentials for this path is accepted.
    pub(crate) fn accepts(&self, path: &str, is_public: impl FnOnce(&str) -> bool) -> bool {
        self.0.load().accepts(path, is_public)
    }
}

/// Authenticates requests without credentials as `system:anonymous`.
///
/// Without it such requests are answered with 401. The authorizer decides what anonymous users may do. Invalid
/// credentials stay invalid: they do not make a request anonymous.
#[derive(Clone, Copy, Debug, Default)]
pub struct Anonymous;

impl Authenticator for Anonymous {
    fn authenticate<'a>(
        &'a self,
        evidence: &'a Evidence<'a>,
    ) -> BoxFuture<'a, Result<Option<User>, BadCredentials>> {
        let bare = !evidence.headers.contains_key(header::AUTHORIZATION)
            && evidence.peer.certificates.is_empty();
        Box::pin(std::future::ready(Ok(bare.then(anonymous))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authn::Peer;
    use bareboat_api::Object;
    use bareboat_api::admission::{Brief, Lookup};
    use http::{HeaderMap, HeaderValue};

    /// A server without objects.
    struct Nothing;

    impl Lookup for Nothing {
        fn brief(&self, _: &str, _: &str, _: &str) -> Option<Brief> {
            None
        }
        fn get(&self, _: &str, _: &str, _: &str) -> Option<Object> {
            None
        }
        fn list(&self, _: &str, _: &str) -> Vec<Object> {
            Vec::new()
        }
    }

    #[tokio::test]
    async fn only_those_without_credentials_are_anonymous() {
        let (mut headers, peer) = (HeaderMap::new(), Peer::default());
        let ask = |headers: HeaderMap| {
            let peer = peer.clone();
            async move {
                let evidence = Evidence {
                    headers: &headers,
                    peer: &peer,
                    objects: &Nothing,
                };
                let found = Anonymous.authenticate(&evidence).await;
                found
                    .expect("nothing is refused here")
                    .map(|user| user.name)
            }
        };
        assert_eq!(
            ask(headers.clone()).await.as_deref(),
            Some("system:anonymous")
        );
        headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer x"));
        assert_eq!(ask(headers).await, None);
    }
}

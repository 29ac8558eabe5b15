//! Whoever shows no credentials, let in under the name that says so.

use super::{Authenticator, BadCredentials, Evidence, anonymous};
use bareboat_api::kind::{BoxFuture, User};
use http::header;

/// Takes requests without credentials for those of `system:anonymous`.
///
/// Without it such requests are answered with 401. What the anonymous may do is for the
/// authorizer to say. Credentials that are no good stay no good: they do not make anonymous.
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
    use bareboat_api::admission::{Brief, World};
    use http::{HeaderMap, HeaderValue};

    /// A server without objects.
    struct Nothing;

    impl World for Nothing {
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

//! Authentication: who asks.
//!
//! Says nothing about what they may do; that is the next room.

mod anonymous;
mod certificate;
mod impersonate;
mod tokens;

pub use anonymous::Anonymous;
pub use certificate::{ClientCertificates, user_of_certificate};
pub(crate) use impersonate::impersonate;
pub use tokens::{StaticTokens, TokenFileError};

use bareboat_api::Str;
use bareboat_api::kind::{BoxFuture, User};
use http::HeaderMap;
use std::sync::Arc;

/// What a connection proved about itself, once, when it was opened.
#[derive(Clone, Debug, Default)]
pub struct Peer {
    /// The certificates the client showed, its own first.
    pub certificates: Vec<rustls::pki_types::CertificateDer<'static>>,
    /// Where it comes from.
    pub address: Option<std::net::SocketAddr>,
    /// Whether it is encrypted.
    pub encrypted: bool,
}

/// What a request shows of its sender.
pub struct Evidence<'a> {
    /// The headers.
    pub headers: &'a HeaderMap,
    /// What the connection proved.
    pub peer: &'a Peer,
}

/// Credentials were shown and are no good; the text goes to the log, never to the client.
#[derive(Debug, Clone)]
pub struct BadCredentials(pub String);

/// One way to find out who asks.
pub trait Authenticator: Send + Sync {
    /// Who asks: nothing when this way does not apply.
    fn authenticate<'a>(
        &'a self,
        evidence: &'a Evidence<'a>,
    ) -> BoxFuture<'a, Result<Option<User>, BadCredentials>>;

    /// Who a whole connection belongs to, where that is known before the first request.
    fn of_connection(&self, _peer: &Peer) -> Option<Result<User, BadCredentials>> {
        None
    }
}

/// The first of several ways that finds somebody.
#[derive(Default, Clone)]
pub struct FirstOf(Vec<Arc<dyn Authenticator>>);

impl FirstOf {
    /// One more way, tried after the others.
    pub fn push(&mut self, authenticator: Arc<dyn Authenticator>) {
        self.0.push(authenticator);
    }

    /// What is known of a connection as such.
    pub(crate) fn of_connection(&self, peer: &Peer) -> Option<Result<User, BadCredentials>> {
        if peer.certificates.is_empty() {
            return None;
        }
        self.0
            .iter()
            .find_map(|authenticator| authenticator.of_connection(peer))
    }

    /// Who asks. A failed way makes the request unauthenticated unless another one succeeds.
    pub(crate) async fn authenticate(
        &self,
        evidence: &Evidence<'_>,
    ) -> Result<Option<User>, BadCredentials> {
        let mut failure = None;
        for authenticator in &self.0 {
            match authenticator.authenticate(evidence).await {
                Ok(Some(user)) => return Ok(Some(user)),
                Ok(None) => {}
                Err(bad) => failure = Some(bad),
            }
        }
        match failure {
            Some(bad) => Err(bad),
            None => Ok(None),
        }
    }
}

/// Adds the group of everyone who could be authenticated.
pub(crate) fn authenticated(mut user: User) -> User {
    if !user.is_in("system:authenticated") && !user.is_in("system:unauthenticated") {
        user.groups.push(Str::const_new("system:authenticated"));
    }
    user
}

/// Whoever shows no credentials.
pub(crate) fn anonymous() -> User {
    User {
        name: Str::const_new("system:anonymous"),
        groups: vec![Str::const_new("system:unauthenticated")],
        ..User::default()
    }
}

/// The server itself, when its own controllers ask.
pub fn in_process() -> User {
    User {
        name: Str::const_new("system:apiserver"),
        groups: vec![
            Str::const_new("system:masters"),
            Str::const_new("system:authenticated"),
        ],
        ..User::default()
    }
}

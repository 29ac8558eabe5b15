//! Authentication: who asks.
//!
//! Says nothing about what they may do; that is the next room.

mod anonymous;
mod certificate;
mod impersonate;
mod tokens;
mod websocket;

pub use anonymous::Anonymous;
pub use certificate::{ClientCertificates, user_of_certificate};
pub(crate) use impersonate::impersonate;
pub use tokens::{StaticTokens, TokenFileError, bearer};
pub(crate) use websocket::{hide_bearer_protocol, subprotocols, wants_websocket, with_bearer};

use bareboat_api::Str;
use bareboat_api::admission::World;
use bareboat_api::kind::{BoxFuture, User};
use http::HeaderMap;
use std::sync::{Arc, OnceLock};

/// What a connection proved about itself, once, when it was opened.
#[derive(Clone, Debug, Default)]
pub struct Peer {
    /// The certificates the client showed, its own first.
    pub certificates: Vec<rustls::pki_types::CertificateDer<'static>>,
    /// Where it comes from.
    pub address: Option<std::net::SocketAddr>,
    /// Whether it is encrypted.
    pub encrypted: bool,
    /// When the first of the certificates ends, in seconds since 1970; found out once.
    ends: OnceLock<i64>,
}

impl Peer {
    /// A connection from an address that showed these certificates.
    pub fn new(
        certificates: Vec<rustls::pki_types::CertificateDer<'static>>,
        address: Option<std::net::SocketAddr>,
        encrypted: bool,
    ) -> Peer {
        Peer {
            certificates,
            address,
            encrypted,
            ends: OnceLock::new(),
        }
    }

    /// When the first of the certificates ends, in seconds since 1970.
    pub(crate) fn ends(&self) -> i64 {
        *self
            .ends
            .get_or_init(|| certificate::end_of(&self.certificates))
    }

    /// Whether a certificate of this connection has expired since it was opened.
    pub(crate) fn has_expired(&self) -> bool {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = now.map_or(0, |time| time.as_secs());
        i64::try_from(now).unwrap_or(i64::MAX) > self.ends()
    }
}

/// What a request shows of its sender.
pub struct Evidence<'a> {
    /// The headers.
    pub headers: &'a HeaderMap,
    /// What the connection proved.
    pub peer: &'a Peer,
    /// The objects of the server, such as service accounts.
    pub objects: &'a dyn World,
}

/// A user known by a bearer token.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenUser {
    /// The user.
    pub user: User,
    /// For which of the audiences that were asked for the token is good; nothing if the token has no audiences, which
    /// makes it good for the API server only.
    pub audiences: Option<Vec<Str>>,
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

    /// Whose bearer token this is, for a TokenReview: nothing when the token is not of this sort. `audiences` is empty
    /// when the question is about the API server itself.
    fn review_token<'a>(
        &'a self,
        _token: &'a str,
        _audiences: &'a [Str],
        _objects: &'a dyn World,
    ) -> BoxFuture<'a, Result<Option<TokenUser>, BadCredentials>> {
        Box::pin(std::future::ready(Ok(None)))
    }

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

    /// Whose bearer token this is.
    pub(crate) async fn review_token(
        &self,
        token: &str,
        audiences: &[Str],
        objects: &dyn World,
    ) -> Result<Option<TokenUser>, BadCredentials> {
        let mut failures = Vec::new();
        for authenticator in &self.0 {
            match authenticator.review_token(token, audiences, objects).await {
                Ok(Some(found)) => {
                    return Ok(Some(TokenUser {
                        user: authenticated(found.user),
                        audiences: found.audiences,
                    }));
                }
                Ok(None) => {}
                Err(BadCredentials(why)) => failures.push(why),
            }
        }
        match failures.is_empty() {
            true => Ok(None),
            false => Err(BadCredentials(failures.join(", "))),
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

//! Authentication: determines the user of a request.
//!
//! Authorization (`authz`) decides what the user may do.

mod anonymous;
mod certificate;
mod front_proxy;
mod impersonate;
#[cfg(feature = "outbound")]
mod issuers;
mod tokens;
#[cfg(feature = "outbound")]
mod webhook;
mod websocket;

pub use anonymous::{Anonymous, AnonymousAccess};
pub use bareboat_api::AnonymousRule;
#[cfg(feature = "outbound")]
pub use bareboat_auth::{AuthenticationConfiguration, ConfigurationError, JwtIssuer};
pub(crate) use certificate::ConnectionIdentity;
pub use certificate::{ClientCertificates, user_of_certificate};
pub use front_proxy::{FrontProxy, FrontProxyError, FrontProxySettings};
pub(crate) use impersonate::{impersonate, wants_impersonation};
#[cfg(feature = "outbound")]
pub use issuers::JwtIssuers;
pub use tokens::{StaticTokens, TokenFileError, bearer};
#[cfg(feature = "outbound")]
pub use webhook::{ReviewVersion, WebhookTokens};
pub(crate) use websocket::{hide_bearer_protocol, subprotocols, wants_websocket, with_bearer};

use crate::revocation::Revocations;
use bareboat_api::Str;
use bareboat_api::admission::Lookup;
use bareboat_api::kind::{BoxFuture, User};
use http::HeaderMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The authenticated facts about a connection, determined when it was opened.
#[derive(Clone, Debug, Default)]
pub struct Peer {
    /// The client's certificate chain, its own certificate first.
    pub certificates: Vec<rustls::pki_types::CertificateDer<'static>>,
    /// The client's address.
    pub address: Option<std::net::SocketAddr>,
    /// Whether the connection uses TLS.
    pub encrypted: bool,
    /// When the first of the certificates expires, in seconds since 1970; computed once.
    ends: OnceLock<i64>,
}

impl Peer {
    /// A connection from an address with these client certificates.
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

    /// Returns when the first of the certificates expires, in seconds since 1970.
    pub(crate) fn ends(&self) -> i64 {
        *self
            .ends
            .get_or_init(|| certificate::end_of(&self.certificates))
    }

    /// Returns how many seconds the certificates of this connection are still valid; `None` if one has expired since it
    /// was opened.
    pub(crate) fn lifetime(&self) -> Option<u64> {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = now.map_or(0, |time| time.as_secs());
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        u64::try_from(self.ends().saturating_sub(now)).ok()
    }
}

/// The credentials of a request.
pub struct Evidence<'a> {
    /// The headers of the request.
    pub headers: &'a HeaderMap,
    /// The connection of the request, with the client certificates.
    pub peer: &'a Peer,
    /// The objects of the server, such as service accounts.
    pub objects: &'a dyn Lookup,
}

bareboat_api::opaque_debug!(Evidence<'_>);

/// A user authenticated by a bearer token.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenUser {
    /// The user that the token authenticates.
    pub user: User,
    /// Those of the requested audiences that the token is valid for; `None` if the token has no audiences and is valid
    /// for the API server only.
    pub audiences: Option<Vec<Str>>,
}

/// Invalid credentials; the text is logged and never sent to the client.
#[derive(Debug, Clone)]
pub struct BadCredentials(pub String);

impl fmt::Display for BadCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadCredentials {}

/// A method of authentication.
///
/// ```
/// # mod bareboat { pub mod api { pub use bareboat_api::*; } pub mod server { pub use bareboat_server::*; } }
/// use bareboat::api::kind::{BoxFuture, User};
/// use bareboat::server::authn::{Authenticator, BadCredentials, Evidence};
///
/// /// Users by a header that only the proxy in front of the server can set.
/// struct FromProxy;
///
/// impl Authenticator for FromProxy {
///     fn authenticate<'a>(
///         &'a self,
///         evidence: &'a Evidence<'a>,
///     ) -> BoxFuture<'a, Result<Option<User>, BadCredentials>> {
///         let found = match evidence.headers.get("x-user").map(|name| name.to_str()) {
///             None => Ok(None),
///             Some(Err(_)) => Err(BadCredentials("the user name is not text".to_owned())),
///             Some(Ok(name)) => Ok(Some(User {
///                 name: name.into(),
///                 groups: vec!["system:authenticated".into()],
///                 ..User::default()
///             })),
///         };
///         Box::pin(std::future::ready(found))
///     }
/// }
/// ```
pub trait Authenticator: Send + Sync {
    /// Returns the user; `None` if this method does not apply.
    fn authenticate<'a>(
        &'a self,
        evidence: &'a Evidence<'a>,
    ) -> BoxFuture<'a, Result<Option<User>, BadCredentials>>;

    /// The same without waiting, for methods that keep the users they know; `None` if
    /// [`Authenticator::authenticate`] has to be asked. A user in the group `system:authenticated` is not copied.
    fn authenticate_now(
        &self,
        _evidence: &Evidence<'_>,
    ) -> Option<Result<Option<Arc<User>>, BadCredentials>> {
        None
    }

    /// Returns the user of a bearer token, for a TokenReview; `None` if this method does not apply to the token.
    /// `audiences` is empty if the API server itself is meant.
    fn review_token<'a>(
        &'a self,
        _token: &'a str,
        _audiences: &'a [Str],
        _objects: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<Option<TokenUser>, BadCredentials>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Returns the user of a whole connection, if it is known before the first request.
    fn of_connection(&self, _peer: &Peer) -> Option<Result<User, BadCredentials>> {
        None
    }

    /// Returns whether requests of a connection name their users themselves, so that the connection has no user.
    fn speaks_for_others(&self, _peer: &Peer) -> bool {
        false
    }

    /// Returns a number that changes whenever [`Authenticator::of_connection`] may return another result.
    fn generation(&self) -> u64 {
        0
    }

    /// Called once when the server is built. Authenticators whose credentials may become invalid while the server runs
    /// keep the value and report changes to it: streams that were opened with such credentials are checked again.
    fn attach(&self, _revocations: &Revocations) {}

    /// Returns the headers that name users; they are removed after authentication.
    fn credential_headers(&self) -> CredentialHeaders {
        CredentialHeaders::default()
    }
}

/// Headers that name users: exact names and prefixes, in lower case, with `-` for `_`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CredentialHeaders {
    names: Vec<String>,
    prefixes: Vec<String>,
}

impl CredentialHeaders {
    /// Headers with these names and prefixes.
    pub fn new<'a>(
        names: impl IntoIterator<Item = &'a String>,
        prefixes: impl IntoIterator<Item = &'a String>,
    ) -> CredentialHeaders {
        let plain = |name: &String| plain_name(name).into_owned();
        CredentialHeaders {
            names: names.into_iter().map(plain).collect(),
            prefixes: prefixes.into_iter().map(plain).collect(),
        }
    }

    fn extend(&mut self, other: CredentialHeaders) {
        self.names.extend(other.names);
        self.prefixes.extend(other.prefixes);
    }

    /// Returns whether a header holds or names credentials, including the headers that every server has.
    pub(crate) fn hold(&self, name: &str) -> bool {
        // Most headers begin with another letter than all of these, or are not as long.
        let letter = name.bytes().next().map(|first| first.to_ascii_lowercase());
        let may_be = match letter {
            Some(b'a') => name.len() == "authorization".len(),
            Some(b'x') => name.len() >= "x-remote-".len(),
            Some(b'i') => name.len() >= "impersonate-".len(),
            Some(b'_') => true,
            _ => false,
        };
        let mut own = self.names.iter().chain(&self.prefixes);
        if !may_be && !own.any(|known| known.is_empty() || known.bytes().next() == letter) {
            return false;
        }
        let name = plain_name(name);
        name == "authorization"
            || name.starts_with("x-remote-")
            || name.starts_with("impersonate-")
            || self.names.iter().any(|known| *known == name)
            || self
                .prefixes
                .iter()
                .any(|prefix| name.starts_with(prefix.as_str()))
    }
}

/// Normalizes a header name, because some servers treat `_` as `-`.
fn plain_name(name: &str) -> std::borrow::Cow<'_, str> {
    match name
        .bytes()
        .any(|byte| byte == b'_' || byte.is_ascii_uppercase())
    {
        true => name.replace('_', "-").to_ascii_lowercase().into(),
        false => name.into(),
    }
}

/// Returns the server's own audiences among those of a TokenReview; `None` if there are none.
pub(crate) fn common_audiences(own: &[Str], wanted: &[Str]) -> Option<Vec<Str>> {
    if wanted.is_empty() {
        return Some(own.to_vec());
    }
    let common: Vec<Str> = wanted
        .iter()
        .filter(|audience| own.contains(audience))
        .cloned()
        .collect();
    (!common.is_empty()).then_some(common)
}

/// Tries several methods in order; the first that finds a user wins.
#[derive(Default, Clone)]
pub struct FirstOf(Vec<Arc<dyn Authenticator>>);

bareboat_api::opaque_debug!(FirstOf);

impl FirstOf {
    /// Adds a method, tried after the others.
    pub fn push(&mut self, authenticator: Arc<dyn Authenticator>) {
        self.0.push(authenticator);
    }

    /// Returns the user of a connection.
    pub(crate) fn of_connection(&self, peer: &Peer) -> Option<Result<User, BadCredentials>> {
        if peer.certificates.is_empty() || self.0.iter().any(|it| it.speaks_for_others(peer)) {
            return None;
        }
        self.0
            .iter()
            .find_map(|authenticator| authenticator.of_connection(peer))
    }

    /// Returns a number that changes whenever connections may have other users than before.
    pub(crate) fn generation(&self) -> u64 {
        self.0
            .iter()
            .fold(0, |sum, it| sum.wrapping_add(it.generation()))
    }

    /// Attaches every authenticator to the revocations.
    pub(crate) fn attach(&self, revocations: &Revocations) {
        for authenticator in &self.0 {
            authenticator.attach(revocations);
        }
    }

    /// Returns all headers that hold or name credentials.
    pub(crate) fn credential_headers(&self) -> CredentialHeaders {
        let mut all = CredentialHeaders::default();
        for authenticator in &self.0 {
            all.extend(authenticator.credential_headers());
        }
        all
    }

    /// Returns the user. If a method fails, the request is unauthenticated unless another one succeeds.
    pub(crate) async fn authenticate(
        &self,
        evidence: &Evidence<'_>,
    ) -> Result<Option<Arc<User>>, BadCredentials> {
        let mut failure = None;
        for authenticator in &self.0 {
            let found = match authenticator.authenticate_now(evidence) {
                Some(found) => found,
                None => {
                    let found = authenticator.authenticate(evidence).await;
                    found.map(|found| found.map(Arc::new))
                }
            };
            match found {
                Ok(Some(user)) => return Ok(Some(authenticated(user))),
                Ok(None) => {}
                Err(bad) => failure = Some(bad),
            }
        }
        match failure {
            Some(bad) => Err(bad),
            // An unknown token must not make the request anonymous.
            None if bearer(evidence.headers).is_some() => {
                Err(BadCredentials("an unknown bearer token".to_owned()))
            }
            None => Ok(None),
        }
    }

    /// Returns the user of a bearer token.
    pub(crate) async fn review_token(
        &self,
        token: &str,
        audiences: &[Str],
        objects: &dyn Lookup,
    ) -> Result<Option<TokenUser>, BadCredentials> {
        let mut failures = Vec::new();
        for authenticator in &self.0 {
            match authenticator.review_token(token, audiences, objects).await {
                Ok(Some(found)) => {
                    let user = authenticated(Arc::new(found.user));
                    return Ok(Some(TokenUser {
                        user: Arc::unwrap_or_clone(user),
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

/// Adds the group of all authenticated users.
pub(crate) fn authenticated(mut user: Arc<User>) -> Arc<User> {
    if !user.is_in("system:authenticated") && !user.is_in("system:unauthenticated") {
        let groups = &mut Arc::make_mut(&mut user).groups;
        groups.push(Str::const_new("system:authenticated"));
    }
    user
}

/// Returns the user of requests without credentials.
pub(crate) fn anonymous() -> User {
    User {
        name: Str::const_new("system:anonymous"),
        groups: vec![Str::const_new("system:unauthenticated")],
        ..User::default()
    }
}

/// Returns the user of the server's own controllers.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_with_credentials_are_known_in_every_spelling() {
        let names = ["X-Other-User".to_owned()];
        let prefixes = ["X-Other-Extra-".to_owned()];
        let known = CredentialHeaders::new(&names, &prefixes);
        for name in [
            "authorization",
            "x-remote-user",
            "x-remote-extra-scopes",
            "x_remote_user",
            "x-remote_group",
            "impersonate-user",
            "impersonate_extra-a",
            "x-other-user",
            "x_other_user",
            "x-other-extra-a",
        ] {
            assert!(known.hold(name), "{name}");
        }
        for name in ["accept", "x-other-users", "x-forwarded-for", "x-remotely"] {
            assert!(!known.hold(name), "{name}");
        }
        let none = CredentialHeaders::default();
        assert!(none.hold("X-Remote-User") && !none.hold("x-other-user"));
    }

    #[test]
    fn audiences_are_those_of_the_server_that_were_asked_for() {
        let own = ["a", "b"].map(Str::new);
        assert_eq!(common_audiences(&own, &[]), Some(own.to_vec()));
        let asked = ["c", "b"].map(Str::new);
        assert_eq!(common_audiences(&own, &asked), Some(vec![Str::new("b")]));
        assert_eq!(common_audiences(&own, &asked[..1]), None);
    }
}

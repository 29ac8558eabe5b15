//! Authentication of one request: by the certificate of its connection, or by credentials in its head.

use super::door::{Door, SocketClient};
use super::error::Error;
use super::paths;
use super::refusal::Refusal;
use super::state::State;
use crate::authn::{self, BadCredentials, Evidence, Peer};
use crate::connections::{Close, Line};
use crate::metrics::Attempt;
use crate::request::info::RequestInfo;
use bareboat_api::Status;
use bareboat_api::kind::User;
use http::HeaderMap;
use std::sync::Arc;

/// Returns the user. Health and version need no credentials.
pub(super) async fn authenticate(
    state: &State,
    door: &Door,
    headers: &HeaderMap,
    info: &RequestInfo,
) -> Result<Arc<User>, Refusal> {
    let client = match door {
        Door::InProcess(user) | Door::Store(user) | Door::Raw(user) => return Ok(user.clone()),
        Door::Socket(client) => client,
    };
    let found = identify(state, client, headers).await;
    state.metrics.authenticated(match &found {
        Ok(Some(_)) => Attempt::Success,
        Ok(None) => Attempt::Failure,
        Err(_) => Attempt::Error,
    });
    match found {
        Ok(Some((user, proof))) => {
            if let Proof::Certificate { lifetime } = proof {
                state.metrics.certificate_used(lifetime);
            }
            admit(&client.line, user, info)
        }
        Ok(None) if accepts_anonymous(state, info) => Ok(Arc::new(authn::anonymous())),
        Ok(None) => Err(Status::unauthorized().into()),
        Err(bad) => Err(unauthenticated(bad)),
    }
}

/// Returns the user of a request that did not come over a socket of this server.
pub(super) async fn of_request<B>(
    state: &State,
    request: &http::Request<B>,
    peer: &Peer,
) -> Result<Option<User>, BadCredentials> {
    if let Some(user) = state.authn.of_connection(peer) {
        return user.map(|user| Some(owned(Arc::new(user))));
    }
    let translated = authn::with_bearer(request.headers())?;
    let evidence = Evidence {
        headers: translated.as_ref().unwrap_or(request.headers()),
        peer,
        objects: state,
    };
    let found = state.authn.authenticate(&evidence).await?;
    let path = request.uri().path();
    let anonymous = || state.anonymous.accepts(path, |path| state.is_public(path));
    Ok(match found {
        Some(user) => Some(owned(user)),
        None => anonymous().then(authn::anonymous),
    })
}

/// Returns a user with the group of all authenticated users.
fn owned(user: Arc<User>) -> User {
    Arc::unwrap_or_clone(authn::authenticated(user))
}

/// Returns whether a request without credentials is accepted.
pub(crate) fn accepts_anonymous(state: &State, info: &RequestInfo) -> bool {
    state
        .anonymous
        .accepts(&info.path, |path| state.is_public(path))
}

/// How a user was authenticated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proof {
    /// By the certificate of the connection, which is valid for so many more seconds.
    Certificate { lifetime: u64 },
    /// By credentials in the request, such as a token.
    Request,
}

/// Returns the user of a request over a connection; `None` without credentials.
pub(crate) async fn identify(
    state: &State,
    client: &SocketClient,
    headers: &HeaderMap,
) -> Result<Option<(Arc<User>, Proof)>, BadCredentials> {
    if let Some(found) = of_certificate(state, client) {
        return found.map(Some);
    }
    let translated = authn::with_bearer(headers)?;
    let evidence = Evidence {
        headers: translated.as_ref().unwrap_or(headers),
        peer: &client.peer,
        objects: state,
    };
    let found = state.authn.authenticate(&evidence).await?;
    Ok(found.map(|user| (user, Proof::Request)))
}

/// Returns the user of the client certificate of a connection, if it has one.
fn of_certificate(
    state: &State,
    client: &SocketClient,
) -> Option<Result<(Arc<User>, Proof), BadCredentials>> {
    let peer = &client.peer;
    let judged = client.identity.current(&state.authn, peer);
    let Some(Ok(user)) = &judged.user else {
        return None;
    };
    // A connection may outlive the certificate it was opened with.
    Some(match peer.lifetime() {
        Some(lifetime) => Ok((user.clone(), Proof::Certificate { lifetime })),
        None => Err(BadCredentials(format!(
            "the client certificate of {} has expired",
            user.name
        ))),
    })
}

fn unauthenticated(bad: BadCredentials) -> Refusal {
    Error::new(Status::unauthorized(), bad).into()
}

/// Marks a connection as authenticated, while the limit allows it. Health checks are always answered, and anonymous
/// users do not count as authenticated.
fn admit(line: &Line, user: Arc<User>, info: &RequestInfo) -> Result<Arc<User>, Refusal> {
    let is_anonymous = || user.is_in("system:unauthenticated");
    if line.is_known() || is_anonymous() || line.know() || paths::is_public(&info.path) {
        return Ok(user);
    }
    line.close(Close::Soon);
    Err(Status::too_many_requests("Too many connections, please try again later.", 1).into())
}

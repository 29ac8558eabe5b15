//! Authentication of one request: by the certificate of its connection, or by credentials in its head.

use super::error::Error;
use super::paths;
use super::refusal::Refusal;
use super::serve::{Door, SocketClient};
use super::state::State;
use crate::authn::{self, BadCredentials, Evidence};
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
        Door::InProcess(user) | Door::Raw(user) => return Ok(user.clone()),
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
            if proof == Proof::Certificate {
                state.metrics.certificate_used(client.peer.ends());
            }
            admit(&client.line, user, info)
        }
        Ok(None) if accepts_anonymous(state, info) => Ok(Arc::new(authn::anonymous())),
        Ok(None) => Err(Status::unauthorized().into()),
        Err(bad) => Err(unauthenticated(bad)),
    }
}

/// Returns whether a request without credentials is accepted.
pub(crate) fn accepts_anonymous(state: &State, info: &RequestInfo) -> bool {
    state.anonymous.accepts(&info.path, paths::is_public)
}

/// How a user was authenticated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proof {
    /// By the certificate of the connection.
    Certificate,
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
        return found.map(|user| Some((user, Proof::Certificate)));
    }
    let translated = authn::with_bearer(headers)?;
    let evidence = Evidence {
        headers: translated.as_ref().unwrap_or(headers),
        peer: &client.peer,
        objects: state,
    };
    let found = state.authn.authenticate(&evidence).await?;
    Ok(found.map(|user| (Arc::new(authn::authenticated(user)), Proof::Request)))
}

/// Returns the user of the client certificate of a connection, if it has one.
fn of_certificate(
    state: &State,
    client: &SocketClient,
) -> Option<Result<Arc<User>, BadCredentials>> {
    let peer = &client.peer;
    let judged = client.identity.current(&state.authn, peer);
    let Some(Ok(user)) = &judged.user else {
        return None;
    };
    // A connection may outlive the certificate it was opened with.
    Some(match peer.has_expired() {
        true => Err(BadCredentials(format!(
            "the client certificate of {} has expired",
            user.name
        ))),
        false => Ok(user.clone()),
    })
}

fn unauthenticated(bad: BadCredentials) -> Refusal {
    Error::new(Status::unauthorized(), bad).into()
}

/// Marks a connection as authenticated, while the limit allows it. Health checks are always answered, and anonymous
/// users do not count as authenticated.
fn admit(line: &Line, user: Arc<User>, info: &RequestInfo) -> Result<Arc<User>, Refusal> {
    let is_anonymous = user.is_in("system:unauthenticated");
    if line.is_known() || is_anonymous || line.know() || paths::is_public(&info.path) {
        return Ok(user);
    }
    line.close(Close::Soon);
    Err(Status::too_many_requests("Too many connections, please try again later.", 1).into())
}

//! Calls of programs to servers that answer for a subresource, such as kubelets, within the rules for outbound calls.
//!
//! The server does not learn who asks. Programs decide what to send; this module connects, forwards and tunnels.

use super::places::{NoPlace, Places};
use super::{Held, Passing, Proxy, Remote};
use crate::audit::Audited;
use crate::outbound::{Destination, Load, OutboundError, Protocol, Shown};
use crate::reply::Response;
use crate::request::ask::{Ask, Came};
use crate::request::body::{LIMIT, RequestBody};
use crate::revocation::{End, Standing};
use crate::server::state::{Ending, State};
use crate::tls::ClientIdentity;
use bareboat_api::Status;
use bareboat_api::kind::User;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::header;
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use std::sync::Arc;
use std::time::Duration;

/// Which certificates of a server are accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum UpstreamTrust {
    /// Those of the system's roots.
    #[default]
    System,
    /// Those of a PEM bundle.
    Bundle(String),
    /// Any certificate.
    Anything,
}

/// A server to call.
#[derive(Clone)]
pub struct Upstream(Arc<Remote>);

bareboat_api::opaque_debug!(Upstream);

impl Upstream {
    /// A server at an `http` or `https` URL. Servers with the same `places` share a limit of calls at once.
    pub fn new(
        url: &str,
        trust: &UpstreamTrust,
        identity: Option<&ClientIdentity>,
        patience: Duration,
        places: &Arc<Places>,
    ) -> Upstream {
        let bundle = match trust {
            UpstreamTrust::Bundle(pem) => BASE64_STANDARD.encode(pem),
            _ => String::new(),
        };
        let destination = Destination::of_url(url, &bundle).map(|destination| {
            let destination = match trust {
                UpstreamTrust::Anything => destination.unverified(),
                _ => destination,
            };
            match identity {
                Some(identity) => destination.showing(Shown::Given(identity.clone())),
                None => destination,
            }
        });
        Upstream(Arc::new(Remote::anonymous(
            destination,
            patience,
            places.clone(),
        )))
    }
}

/// An answer of a server, and what must be held until it is read.
pub struct UpstreamAnswer {
    /// The answer.
    pub response: http::Response<Incoming>,
    /// Held until the answer, or the connection it was upgraded to, has ended.
    pub hold: Hold,
}

bareboat_api::opaque_debug!(UpstreamAnswer);

/// Counts a call as running.
pub struct Hold {
    _held: (Held, Load),
}

bareboat_api::opaque_debug!(Hold);

/// The calls of one request.
#[derive(Clone)]
pub struct Calls {
    state: Arc<State>,
    user: Arc<User>,
    came: Came,
    host: Option<String>,
    audit_id: String,
    standing: Option<Arc<Standing>>,
    audited: Option<Arc<Audited>>,
    upgrade: Option<OnUpgrade>,
}

bareboat_api::opaque_debug!(Calls);

impl Calls {
    pub(crate) fn new(state: &Arc<State>, ask: &Ask) -> Calls {
        let host = ask.headers.get(header::HOST);
        let host = host.and_then(|host| host.to_str().ok());
        let host = host.or_else(|| ask.uri.authority().map(|host| host.as_str()));
        Calls {
            state: state.clone(),
            user: ask.user.clone(),
            came: ask.came,
            host: host.map(str::to_owned),
            audit_id: ask.audit_id().to_owned(),
            standing: ask.standing.clone(),
            audited: ask.trace.audited().cloned(),
            upgrade: ask.upgrade.clone(),
        }
    }

    /// Returns how long an upgraded connection of the client may go on.
    pub fn life(&self) -> Life {
        Life {
            ending: self.state.ending().or_of(self.standing.clone()),
            _counted: Arc::new(self.state.under_way.enter()),
            _audited: self.audited.clone(),
        }
    }

    /// Forwards the client's request under another path, and returns the answer as soon as its head has arrived. Bodies
    /// stream; an upgraded connection becomes a tunnel.
    pub async fn forward(
        &self,
        to: &Upstream,
        target: &str,
        request: http::Request<RequestBody>,
    ) -> Result<Response, Status> {
        self.forward_with(to, target, request, &[]).await
    }

    /// Like [`Calls::forward`], with headers that only this program may set, such as those of impersonation. They replace the
    /// client's headers of the same names.
    pub async fn forward_with(
        &self,
        to: &Upstream,
        target: &str,
        request: http::Request<RequestBody>,
        remarks: &[(header::HeaderName, String)],
    ) -> Result<Response, Status> {
        let (head, body) = request.into_parts();
        let passing = Passing {
            method: head.method,
            target: target.to_owned(),
            headers: &head.headers,
            user: &self.user,
            came: self.came,
            host: self.host.as_deref(),
            audit_id: &self.audit_id,
            standing: self.standing.clone(),
            remarks,
            audited: self.audited.clone(),
            upgrade: self.upgrade.clone(),
            body,
            limit: LIMIT,
            until: None,
            end: End::Broken,
        };
        self.state.proxy.pass_on(&to.0, passing).await
    }

    /// Sends a request of this program's own, and returns the answer as soon as its head has arrived.
    pub async fn send(
        &self,
        to: &Upstream,
        target: &str,
        mut request: http::Request<RequestBody>,
    ) -> Result<UpstreamAnswer, CallError> {
        let destination = to.0.destination.as_ref();
        let destination =
            destination.map_err(|error| CallError::of(&self.state.proxy, &self.audit_id, error))?;
        let uri = destination.below(target);
        *request.uri_mut() =
            uri.map_err(|error| CallError::of(&self.state.proxy, &self.audit_id, &error))?;
        let place = to.0.places.take(&self.user);
        let held = Held {
            _place: place.map_err(CallError::Busy)?,
            _counted: self.state.under_way.enter(),
            _audited: self.audited.clone(),
        };
        let protocol = match request.headers().contains_key(header::UPGRADE) {
            true => Protocol::Http1,
            false => Protocol::Best,
        };
        let proxy = &self.state.proxy;
        let sending = proxy.outbound.send(destination, request, protocol);
        match tokio::time::timeout(to.0.patience, sending).await {
            Err(_) => Err(CallError::Late(to.0.patience)),
            Ok(Err(error)) => Err(CallError::of(proxy, &self.audit_id, &error)),
            Ok(Ok((response, load))) => Ok(UpstreamAnswer {
                response,
                hold: Hold {
                    _held: (held, load),
                },
            }),
        }
    }
}

/// Why a call has no answer.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// Too many calls to the server are running.
    #[error("the server gets no more requests at once: {0}")]
    Busy(NoPlace),
    /// The answer did not start in time.
    #[error("no answer within {} s", .0.as_secs_f64())]
    Late(Duration),
    /// The server was not reached, or its answer is invalid; holds what clients may read about it.
    #[error("{0}")]
    Failed(String),
}

impl CallError {
    fn of(proxy: &Proxy, audit_id: &str, error: &OutboundError) -> CallError {
        CallError::Failed(proxy.outbound.disclose_cause(error, audit_id))
    }
}

/// How long a stream may go on. It is audited as running, and a shutdown waits for it, until this is dropped.
#[derive(Clone)]
pub struct Life {
    ending: Ending,
    _counted: Arc<crate::server::state::Counted>,
    _audited: Option<Arc<Audited>>,
}

bareboat_api::opaque_debug!(Life);

impl Life {
    /// Waits until the client loses its permission or the server shuts down.
    pub async fn ended(&self) {
        self.ending.clone().begun().await;
    }
}

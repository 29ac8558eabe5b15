//! Calls of programs to servers that answer for a subresource, such as kubelets, within the rules for outbound calls.
//!
//! The server does not learn who asks. Programs decide what to send; this module connects, forwards and tunnels.

use super::places::{NoPlace, Places};
use super::{Held, Passing, Proxy, Remote};
use crate::kinds::calls::Calls;
use crate::outbound::{ChosenBy, Destination, Load, OutboundError, Protocol, Shown};
use crate::reply::Response;
use crate::request::body::{LIMIT, RequestBody};
use crate::revocation::End;
use crate::tls::ClientIdentity;
use bareboat_api::Status;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::header;
use hyper::body::Incoming;
use std::net::SocketAddr;
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
        let destination = Destination::of_url(url, &trust.bundle()).map(|destination| {
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

impl Upstream {
    /// Another server of the same program, which learns who asks: by the certificate for proxied requests, and the headers of
    /// front proxies. Its own certificate must have a name.
    pub fn peer(
        address: SocketAddr,
        name: &str,
        trust: &UpstreamTrust,
        patience: Duration,
    ) -> Upstream {
        let destination =
            Destination::of_address(address, name, &trust.bundle()).map(|destination| {
                let destination = match trust {
                    UpstreamTrust::Anything => destination.unverified(),
                    _ => destination,
                };
                let destination = destination.chosen_by(ChosenBy::Operator);
                destination.showing(Shown::FrontProxy)
            });
        Upstream(Arc::new(Remote::peer(destination, patience)))
    }
}

impl UpstreamTrust {
    /// Returns the bundle, base64 of PEM; empty for the system's roots.
    fn bundle(&self) -> String {
        match self {
            UpstreamTrust::Bundle(pem) => BASE64_STANDARD.encode(pem),
            _ => String::new(),
        }
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

impl Calls {
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
        self.pass(to, target.to_owned(), request, remarks, End::Broken)
            .await
    }

    /// Forwards the client's request as it is to another server of the same program, with the user's identity. A watch may
    /// end at any time, so it ends plainly; other answers break off. Call it last: it does what [`Calls::leave`] does.
    pub async fn relay(
        &self,
        to: &Upstream,
        request: http::Request<RequestBody>,
        remarks: &[(header::HeaderName, String)],
        watches: bool,
    ) -> Result<Response, Status> {
        let target = request.uri().path_and_query();
        let target = target.map_or_else(|| "/".to_owned(), ToString::to_string);
        let end = match watches {
            true => End::Plain,
            false => End::Broken,
        };
        self.leave();
        self.pass(to, target, request, remarks, end).await
    }

    async fn pass(
        &self,
        to: &Upstream,
        target: String,
        request: http::Request<RequestBody>,
        remarks: &[(header::HeaderName, String)],
        end: End,
    ) -> Result<Response, Status> {
        let (ask, (head, body)) = (&self.ask, request.into_parts());
        self.state.may_pass_on(ask)?;
        let passing = Passing {
            method: head.method,
            target,
            headers: &head.headers,
            user: &ask.user,
            came: ask.came,
            host: ask.host(),
            audit_id: ask.audit_id(),
            streams: ask.streams,
            standing: ask.standing.clone(),
            remarks,
            audited: ask.trace.audited().cloned(),
            upgrade: ask.upgrade.clone(),
            body,
            limit: LIMIT,
            until: None,
            end,
        };
        self.away(self.state.proxy.pass_on(&to.0, passing)).await
    }

    /// Sends a request of this program's own, and returns the answer as soon as its head has arrived.
    pub async fn send(
        &self,
        to: &Upstream,
        target: &str,
        mut request: http::Request<RequestBody>,
    ) -> Result<UpstreamAnswer, CallError> {
        let (proxy, audit_id) = (&self.state.proxy, self.ask.audit_id());
        let sends = self.state.may_pass_on(&self.ask);
        sends.map_err(|_| CallError::Stopping)?;
        let destination = to.0.destination.as_ref();
        let destination = destination.map_err(|error| CallError::of(proxy, audit_id, error))?;
        let uri = destination.below(target);
        *request.uri_mut() = uri.map_err(|error| CallError::of(proxy, audit_id, &error))?;
        let place = to.0.places.take(&self.ask.user);
        let held = Held {
            _place: place.map_err(CallError::Busy)?,
            _counted: self.state.under_way.enter(),
            _audited: self.ask.trace.audited().cloned(),
        };
        let protocol = match request.headers().contains_key(header::UPGRADE) {
            true => Protocol::Http1,
            false => Protocol::Best,
        };
        let sending = proxy.outbound.send(destination, request, protocol);
        match self
            .away(tokio::time::timeout(to.0.patience, sending))
            .await
        {
            Err(_) => Err(CallError::Late(to.0.patience)),
            Ok(Err(error)) => Err(CallError::of(proxy, audit_id, &error)),
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
    /// This server stops. The client gets 503 with `Retry-After`, whatever the program answers.
    #[error("this server is stopping")]
    Stopping,
    /// The server was not reached, or its answer is invalid; holds what clients may read about it.
    #[error("{0}")]
    Failed(String),
}

impl CallError {
    fn of(proxy: &Proxy, audit_id: &str, error: &OutboundError) -> CallError {
        CallError::Failed(proxy.outbound.disclose_cause(error, audit_id))
    }
}

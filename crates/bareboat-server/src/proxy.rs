//! Passes requests on to other servers, on behalf of the caller.
//!
//! Bodies stream both ways and are never buffered; an upgraded connection becomes a tunnel. This module knows no kinds
//! or API URLs: the caller decides whether a request is proxied, to which server and under which path. The target is a
//! subresource (`verbs/connect`), or a whole group and version of another API server (`aggregation`). `outbound` resolves
//! and authenticates the server.

mod failure;
mod headers;
pub(crate) mod places;
mod remote_server;
mod streams;
pub(crate) mod tunnel;
pub(crate) mod upstream;

pub(crate) use failure::{ProxyFailure, REDIRECT, UNREACHABLE};
pub(crate) use headers::Remark;
pub use remote_server::RemoteServer;

use crate::audit::Audited;
use crate::outbound::{Destination, Outbound, OutboundError, Protocol};
use crate::reply::{Body, Response};
use crate::request::ask::Came;
use crate::request::body::RequestBody;
use crate::revocation::{End, Standing};
use crate::server::state::{Counted, Ending, UnderWay};
use bareboat_api::Status;
use bareboat_api::kind::User;
use http::{HeaderMap, Method, StatusCode, header};
use hyper::upgrade::OnUpgrade;
use places::{Place, Places};
use std::sync::Arc;
use std::time::{Duration, Instant};
use streams::{Answered, Sent};

/// Forwards requests to upstream servers, and streams the answers back.
pub(crate) struct Proxy {
    outbound: Arc<Outbound>,
    ending: Ending,
    under_way: UnderWay,
}

/// An upstream server.
pub(crate) struct Remote {
    /// An error in the address is returned to each request for this server.
    destination: Result<Destination, OutboundError>,
    /// How long an answer may take to start.
    patience: Duration,
    places: Arc<Places>,
    /// Whether the server learns who asks, and may therefore not redirect.
    identifies: bool,
}

impl Remote {
    pub(crate) fn new(
        destination: Result<Destination, OutboundError>,
        patience: Duration,
    ) -> Remote {
        Remote {
            destination,
            patience,
            places: Arc::default(),
            identifies: true,
        }
    }

    /// Another server of the same program.
    pub(crate) fn peer(
        destination: Result<Destination, OutboundError>,
        patience: Duration,
    ) -> Remote {
        Remote {
            places: Arc::new(Places::of_peer()),
            ..Remote::new(destination, patience)
        }
    }

    /// A server that does not learn who asks. Several may share their places.
    pub(crate) fn anonymous(
        destination: Result<Destination, OutboundError>,
        patience: Duration,
        places: Arc<Places>,
    ) -> Remote {
        Remote {
            destination,
            patience,
            places,
            identifies: false,
        }
    }

    /// Returns the address, or what is wrong with it.
    pub(crate) fn destination(&self) -> Result<&Destination, &OutboundError> {
        self.destination.as_ref()
    }
}

/// A request to forward.
pub(crate) struct Passing<'a> {
    pub(crate) method: Method,
    /// Path and query below the path of the destination; starts with a slash.
    pub(crate) target: String,
    /// The client's headers, without its credentials.
    pub(crate) headers: &'a HeaderMap,
    /// The requesting user.
    pub(crate) user: &'a User,
    pub(crate) came: Came,
    /// The name of this server in the client's request.
    pub(crate) host: Option<&'a str>,
    pub(crate) audit_id: &'a str,
    /// Whether the answer may be a stream, which a shutdown ends.
    pub(crate) streams: bool,
    /// Whether the client may still have the answer.
    pub(crate) standing: Option<Arc<Standing>>,
    /// Additional headers for the upstream server.
    pub(crate) remarks: &'a [Remark],
    /// The record of the request, kept open until the answer ends.
    pub(crate) audited: Option<Arc<Audited>>,
    pub(crate) upgrade: Option<OnUpgrade>,
    pub(crate) body: RequestBody,
    /// Maximum size of the body.
    pub(crate) limit: usize,
    /// When the answer must be complete; `None` for streams.
    pub(crate) until: Option<Instant>,
    /// How the answer ends if it is cut off.
    pub(crate) end: End,
}

/// Resources held until the last byte of the answer.
struct Held {
    _place: Place,
    _counted: Counted,
    _audited: Option<Arc<Audited>>,
}

impl Proxy {
    pub(crate) fn new(outbound: Arc<Outbound>, ending: Ending, under_way: UnderWay) -> Proxy {
        Proxy {
            outbound,
            ending,
            under_way,
        }
    }

    /// Returns the client for calls to other servers.
    pub(crate) fn outbound(&self) -> &Outbound {
        &self.outbound
    }

    /// Forwards a request, and returns the answer as soon as its head has arrived. A failure names the upstream server.
    pub(crate) async fn pass_on(
        &self,
        to: &Remote,
        passing: Passing<'_>,
    ) -> Result<Response, Status> {
        let passed = self.forward(to, passing).await;
        passed.map_err(ProxyFailure::status)
    }

    /// Forwards a request, and returns the answer as soon as its head has arrived.
    pub(crate) async fn forward(
        &self,
        to: &Remote,
        passing: Passing<'_>,
    ) -> Result<Response, ProxyFailure> {
        let destination = to.destination.as_ref().map_err(failure::unusable)?;
        let call = failure::Call {
            outbound: &self.outbound,
            to: destination,
            audit_id: passing.audit_id,
        };
        let place = to.places.take(passing.user);
        let held = Held {
            _place: place.map_err(|why| failure::no_place(destination, why))?,
            _counted: self.under_way.enter(),
            _audited: passing.audited.clone(),
        };
        let upgrade = passing
            .upgrade
            .clone()
            .filter(|_| headers::asks_to_upgrade(passing.headers));
        let ending = self.ending.clone().or_of(passing.standing.clone());
        let uri = destination.below(&passing.target);
        let headers = headers::outward(&passing, upgrade.is_some(), to.identifies)?;
        let (body, sent) = Sent::new(passing.body, passing.limit)?;
        let mut request = http::Request::new(body);
        *request.method_mut() = passing.method;
        *request.uri_mut() = uri.map_err(|error| failure::unusable(&error))?;
        *request.headers_mut() = headers;

        let protocol = match upgrade {
            Some(_) => Protocol::Http1,
            None => Protocol::Best,
        };
        let patience = match passing.until {
            Some(until) => until.saturating_duration_since(Instant::now()),
            None => to.patience,
        };
        let patience = patience.min(to.patience);
        let sending = self.outbound.send(destination, request, protocol);
        let (mut response, load) = match tokio::time::timeout(patience, sending).await {
            Err(_) => return Err(failure::late(call, patience, &sent)),
            Ok(Err(error)) => return Err(failure::of(call, &error, &sent)),
            Ok(Ok(answer)) => answer,
        };
        let code = response.status();
        if code == StatusCode::SWITCHING_PROTOCOLS {
            let Some(client) =
                upgrade.filter(|_| headers::same_upgrade(passing.headers, &response))
            else {
                return Err(failure::unasked_upgrade(call).into());
            };
            let backend = hyper::upgrade::on(&mut response);
            tunnel::start(client, backend, ending, (held, load));
            let (head, _) = response.into_parts();
            let mut answer = http::Response::new(Body::empty());
            *answer.status_mut() = code;
            *answer.headers_mut() = headers::homeward(head.headers, true);
            return Ok(answer);
        }
        // The redirect's target was not configured, so it must not learn the user's identity.
        if to.identifies
            && code.is_redirection()
            && response.headers().contains_key(header::LOCATION)
        {
            return Err(failure::redirect(call));
        }
        let (head, body) = response.into_parts();
        let ending = passing.streams.then_some(ending);
        let body = Answered::new(body, ending, passing.end, passing.until, (held, load));
        let mut answer = http::Response::new(Body::stream(body));
        *answer.status_mut() = code;
        *answer.headers_mut() = headers::homeward(head.headers, false);
        Ok(answer)
    }
}

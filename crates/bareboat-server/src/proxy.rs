//! Passing requests on to somebody else who answers them, in the name of whoever asked.
//!
//! Bodies stream both ways and are never gathered; an upgraded connection becomes a tunnel. Nothing here knows kinds or
//! URLs of the API: whether a request may be passed on, where to and under which path is decided by whoever calls, be it
//! a subresource today or a whole group and version of another API server. Finding and trusting the other side is
//! `outbound`'s work.

mod failure;
mod headers;
mod streams;
mod tunnel;

pub(crate) use headers::Remark;

use crate::outbound::{Destination, Outbound, OutboundError, Protocol};
use crate::reply::{Body, Response};
use crate::request::ask::Came;
use crate::request::body::RequestBody;
use crate::server::state::{Counted, Ending, UnderWay};
use bareboat_api::Status;
use bareboat_api::kind::User;
use http::{HeaderMap, Method, StatusCode, header};
use hyper::upgrade::OnUpgrade;
use std::sync::Arc;
use std::time::Duration;
use streams::{Answered, Sent};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many requests to one backend may be under way; streams and tunnels are for as long as they last.
const PLACES: usize = 1024;

/// Passes requests on.
pub(crate) struct Proxy {
    outbound: Arc<Outbound>,
    ending: Ending,
    under_way: UnderWay,
}

/// Somebody whom requests are passed on to.
pub(crate) struct Remote {
    /// What is wrong with an address is told to those who ask for what is there.
    destination: Result<Destination, OutboundError>,
    /// How long an answer may take to begin.
    patience: Duration,
    /// Each has its own, so that one that hangs takes nothing from others.
    places: Arc<Semaphore>,
}

impl Remote {
    pub(crate) fn new(
        destination: Result<Destination, OutboundError>,
        patience: Duration,
    ) -> Remote {
        Remote {
            destination,
            patience,
            places: Arc::new(Semaphore::new(PLACES)),
        }
    }
}

/// A request that is passed on.
pub(crate) struct Passing<'a> {
    pub(crate) method: Method,
    /// What is asked for there, below the path of the destination; begins with a slash.
    pub(crate) target: String,
    /// The headers of the client, without its credentials.
    pub(crate) headers: &'a HeaderMap,
    /// In whose name.
    pub(crate) user: &'a User,
    pub(crate) came: Came,
    /// The name the client knows this server by.
    pub(crate) host: Option<&'a str>,
    pub(crate) audit_id: &'a str,
    /// What else the other side is told.
    pub(crate) remarks: &'a [Remark],
    pub(crate) upgrade: Option<OnUpgrade>,
    pub(crate) body: RequestBody,
    /// How large the body may be.
    pub(crate) limit: usize,
}

/// What a request holds until the last byte of its answer.
struct Held {
    _place: OwnedSemaphorePermit,
    _counted: Counted,
}

impl Proxy {
    pub(crate) fn new(outbound: Arc<Outbound>, ending: Ending, under_way: UnderWay) -> Proxy {
        Proxy {
            outbound,
            ending,
            under_way,
        }
    }

    /// Passes a request on, and gives the answer as soon as it begins.
    pub(crate) async fn pass_on(
        &self,
        to: &Remote,
        passing: Passing<'_>,
    ) -> Result<Response, Status> {
        let destination = to.destination.as_ref().map_err(failure::unusable)?;
        let place = to.places.clone().try_acquire_owned();
        let held = Held {
            _place: place.map_err(|_| failure::no_place(destination))?,
            _counted: self.under_way.enter(),
        };
        let upgrade = passing
            .upgrade
            .clone()
            .filter(|_| headers::asks_to_upgrade(passing.headers));
        let uri = destination.below(&passing.target);
        let headers = headers::outward(&passing, upgrade.is_some())?;
        let (body, sent) = Sent::new(passing.body, passing.limit)?;
        let mut request = http::Request::new(body);
        *request.method_mut() = passing.method;
        *request.uri_mut() = uri.map_err(|error| failure::unusable(&error))?;
        *request.headers_mut() = headers;

        let protocol = match upgrade {
            Some(_) => Protocol::Http1,
            None => Protocol::Best,
        };
        let sending = self.outbound.send(destination, request, protocol);
        let (mut response, load) = match tokio::time::timeout(to.patience, sending).await {
            Err(_) => return Err(failure::late(destination, to.patience, &sent)),
            Ok(Err(error)) => return Err(failure::of(destination, &error, &sent)),
            Ok(Ok(answer)) => answer,
        };
        let code = response.status();
        if code == StatusCode::SWITCHING_PROTOCOLS {
            let Some(client) =
                upgrade.filter(|_| headers::same_upgrade(passing.headers, &response))
            else {
                return Err(failure::unasked_upgrade(destination));
            };
            let backend = hyper::upgrade::on(&mut response);
            tunnel::start(client, backend, self.ending.clone(), (held, load));
            let (head, _) = response.into_parts();
            let mut answer = http::Response::new(Body::empty());
            *answer.status_mut() = code;
            *answer.headers_mut() = headers::homeward(head.headers, true);
            return Ok(answer);
        }
        // Wherever it would lead, nobody there was asked whether they may know who is calling.
        if code.is_redirection() && response.headers().contains_key(header::LOCATION) {
            return Err(failure::redirect(destination));
        }
        let (head, body) = response.into_parts();
        let body = Answered::new(body, self.ending.clone(), (held, load));
        let mut answer = http::Response::new(Body::stream(body));
        *answer.status_mut() = code;
        *answer.headers_mut() = headers::homeward(head.headers, false);
        Ok(answer)
    }
}

//! Requests that another server of the same store answers: the one that has the members' objects.
//!
//! A request is forwarded once at most. A server that gets a forwarded request and cannot answer it says so, because the two
//! servers do not agree yet which of them does.

use crate::members::Place;
use crate::target::{Target, What};
use bareboat_api::Status;
use bareboat_server::Visit;
use bareboat_server::reply::Response;
use bareboat_server::request::info::RequestInfo;
use http::{HeaderName, StatusCode};

/// The header of forwarded requests. Servers do not pass on a client's own.
const FORWARDED: HeaderName = HeaderName::from_static("bareboat-forwarded");

/// Returns the answer of another server, or that there is none.
pub(crate) async fn relay(place: Place, visit: Visit) -> Result<Response, Status> {
    let there = match place {
        Place::There(there) => there,
        Place::Nowhere(status) => return Err(status),
        Place::Here => return Err(unavailable("this server answers itself")),
    };
    if visit.request.headers().contains_key(FORWARDED) {
        return Err(unavailable(
            "another server takes over the fleet at the moment; try again in a few seconds",
        ));
    }
    let watches = watches(&visit);
    let remarks = [(FORWARDED, "true".to_owned())];
    let relayed = visit.calls.relay(&there, visit.request, &remarks, watches);
    match relayed.await {
        // The user is known here. It is this server that the other one does not know.
        Ok(answer) if answer.status() == StatusCode::UNAUTHORIZED => Err(unavailable(
            "the server that leads the fleet does not accept the certificate of this server; all servers of a store need the same \
             front-proxy CA (bareboat init-shared)",
        )),
        Ok(answer) => Ok(answer),
        Err(status) if status.code >= 500 => {
            let why = status.message;
            let message = format!(
                "the server that leads the fleet does not answer: {why}; try again in a few seconds"
            );
            Err(unavailable(&message))
        }
        Err(status) => Err(status),
    }
}

/// Returns 503, with a time to try again after.
fn unavailable(message: &str) -> Status {
    Status::unavailable(message).retry_after(1)
}

/// Returns whether a request is a watch of a view.
fn watches(visit: &Visit) -> bool {
    let (request, query) = (&visit.request, &visit.question.query);
    let method = request.method();
    let Ok(outer) = RequestInfo::parse(method, request.uri().path(), query) else {
        return false;
    };
    match Target::parse(method, &outer, query) {
        Some(Target::View {
            what: What::Resource(info),
            ..
        }) => info.verb == "watch",
        _ => false,
    }
}

//! What a client is told when there is no answer to pass on: whose fault it is, and what it was.

use super::streams::Sent;
use crate::outbound::{Destination, OutboundError};
use bareboat_api::Status;
use std::time::Duration;

/// Nobody can be called by such an address.
pub(super) fn unusable(error: &OutboundError) -> Status {
    Status::unavailable(format!("the service cannot be called: {error}"))
}

/// Too many requests are with the backend already.
pub(super) fn no_place(to: &Destination) -> Status {
    let text = format!("too many requests are under way to {to}, please try again later");
    Status::too_many_requests(text, 1)
}

/// The answer did not begin in time.
pub(super) fn late(to: &Destination, patience: Duration, sent: &Sent) -> Status {
    let seconds = patience.as_secs_f64();
    Status::timeout(if sent.is_arriving() {
        format!("the body of the request did not arrive within {seconds} s")
    } else {
        format!("{to} did not answer within {seconds} s")
    })
}

/// There was no connection, or nothing sensible came of it.
pub(super) fn of(to: &Destination, error: &OutboundError, sent: &Sent) -> Status {
    if let Some(fault) = sent.fault() {
        return fault;
    }
    match error {
        OutboundError::Unreachable { why, .. } => {
            Status::unavailable(format!("error trying to reach service: {why}"))
        }
        OutboundError::Broken { why, .. } => {
            bad_gateway(format!("{to} gave no proper answer: {why}"))
        }
        other => unusable(other),
    }
}

/// The backend sends its callers elsewhere.
pub(super) fn redirect(to: &Destination) -> Status {
    bad_gateway(format!(
        "the backend attempted to redirect this request, which is not permitted ({to})"
    ))
}

/// The backend changes the protocol though nobody asked for that one.
pub(super) fn unasked_upgrade(to: &Destination) -> Status {
    bad_gateway(format!(
        "{to} switches to a protocol that was not asked for"
    ))
}

fn bad_gateway(message: String) -> Status {
    Status::new(502, "BadGateway", message)
}

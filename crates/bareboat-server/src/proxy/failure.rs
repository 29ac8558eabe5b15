//! Why a proxied request has no answer, and the Status that says so.
//!
//! If clients may not read why calls fail, all failures before an answer are the same 503.

use super::places::NoPlace;
use super::streams::Sent;
use crate::outbound::{Destination, Outbound, OutboundError, hidden_under};
use bareboat_api::Status;
use std::time::Duration;

/// The message for clients when an upstream server answers with a redirect.
pub(crate) const REDIRECT: &str =
    "the backend attempted to redirect this request, which is not permitted";
/// How the message begins when an upstream server cannot be reached.
pub(crate) const UNREACHABLE: &str = "error trying to reach service: ";

/// The reason why a proxied request has no answer, with the Status for the client of a subresource.
pub(crate) enum ProxyFailure {
    /// The upstream server cannot be called, because its address or its CA bundle is invalid.
    Unusable(Status),
    /// No connection could be made, or the cause is hidden. The message begins with [`UNREACHABLE`].
    Unreachable(Status),
    /// The connection broke, or the answer was invalid; holds the cause.
    Broken(Status, String),
    /// The upstream server answered with a redirect.
    Redirect(Status),
    /// Every other reason: the client's own error, a limit, a deadline.
    Other(Status),
}

impl ProxyFailure {
    /// The answer for the client of a subresource, which names the upstream server.
    pub(super) fn status(self) -> Status {
        match self {
            ProxyFailure::Unusable(status)
            | ProxyFailure::Unreachable(status)
            | ProxyFailure::Broken(status, _)
            | ProxyFailure::Redirect(status)
            | ProxyFailure::Other(status) => status,
        }
    }
}

impl From<Status> for ProxyFailure {
    fn from(status: Status) -> ProxyFailure {
        ProxyFailure::Other(status)
    }
}

/// The calls of a request.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) outbound: &'a Outbound,
    pub(super) to: &'a Destination,
    pub(super) audit_id: &'a str,
}

impl Call<'_> {
    /// Returns the Status that hides a cause, if it must be hidden.
    fn hidden(&self, cause: impl FnOnce() -> String) -> Option<Status> {
        if self.outbound.shows_causes() {
            return None;
        }
        let text = hidden_under(Some(self.audit_id), &cause());
        Some(Status::unavailable(format!("{UNREACHABLE}{text}")))
    }
}

/// Returns 503: the upstream server cannot be called, because its address is invalid.
pub(super) fn unusable(error: &OutboundError) -> ProxyFailure {
    let status = Status::unavailable(format!("the service cannot be called: {error}"));
    ProxyFailure::Unusable(status.caused_by(error.clone()))
}

/// Returns 429: too many requests to the upstream server are running.
pub(super) fn no_place(to: &Destination, why: NoPlace) -> Status {
    let text = format!("{to} gets no more requests at once: {why}");
    Status::too_many_requests(text, 1)
}

/// The answer did not start in time.
pub(super) fn late(call: Call<'_>, patience: Duration, sent: &Sent) -> ProxyFailure {
    let seconds = patience.as_secs_f64();
    if sent.is_arriving() {
        let text = format!("the body of the request did not arrive within {seconds} s");
        return Status::timeout(text).into();
    }
    let text = || format!("{} did not answer within {seconds} s", call.to);
    match call.hidden(text) {
        Some(status) => ProxyFailure::Unreachable(status),
        None => Status::timeout(text()).into(),
    }
}

/// No connection could be made, or the answer was invalid.
pub(super) fn of(call: Call<'_>, error: &OutboundError, sent: &Sent) -> ProxyFailure {
    if let Some(fault) = sent.fault() {
        return fault.into();
    }
    let configured = matches!(error, OutboundError::Target(_) | OutboundError::Trust(_));
    if !configured && let Some(status) = call.hidden(|| error.without_page()) {
        return ProxyFailure::Unreachable(status);
    }
    let to = call.to;
    match error {
        OutboundError::Unreachable { why, .. } => {
            let status = Status::unavailable(format!("{UNREACHABLE}{why}"));
            ProxyFailure::Unreachable(status.caused_by(error.clone()))
        }
        OutboundError::Broken { why, .. } => {
            let status = bad_gateway(format!("{to} returned an invalid answer: {why}"));
            ProxyFailure::Broken(status.caused_by(error.clone()), why.clone())
        }
        other => unusable(other),
    }
}

/// The upstream server answered with a redirect.
pub(super) fn redirect(call: Call<'_>) -> ProxyFailure {
    let to = match call.outbound.shows_causes() {
        true => format!(" ({})", call.to),
        false => String::new(),
    };
    ProxyFailure::Redirect(bad_gateway(format!("{REDIRECT}{to}")))
}

/// The upstream server switched to a protocol the client did not ask for.
pub(super) fn unasked_upgrade(call: Call<'_>) -> Status {
    let who = match call.outbound.shows_causes() {
        true => call.to.to_string(),
        false => "the backend".to_owned(),
    };
    bad_gateway(format!(
        "{who} switches to a protocol that was not asked for"
    ))
}

fn bad_gateway(message: String) -> Status {
    Status::new(502, "BadGateway", message)
}

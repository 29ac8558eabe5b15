//! The outcome of a request: an answer, or a refusal.

use super::error::Error;
use crate::diagnostics::Trace;
use crate::flow::Class;
use crate::reply::Response;
use bareboat_api::Status;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// The reason why a request was not answered.
pub(super) enum Refusal {
    Error(Error),
    Response(Box<Response>),
}

impl Refusal {
    /// Returns whether a limit or a deadline of the server ended the request.
    pub(super) fn is_termination(&self) -> bool {
        let code = match self {
            Refusal::Error(error) => error.status().code,
            Refusal::Response(response) => response.status().as_u16(),
        };
        matches!(code, 429 | 504)
    }
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Refusal {
        Refusal::Error(status.into())
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Error(error)
    }
}

impl From<Box<Response>> for Refusal {
    fn from(response: Box<Response>) -> Refusal {
        Refusal::Response(response)
    }
}

/// The message of a panic, as the cause of an error.
#[derive(Debug)]
struct Panic(String);

impl fmt::Display for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "panic: {}", self.0)
    }
}

impl std::error::Error for Panic {}

/// Returns a 500 for a request whose code panicked. The client gets the ID of the request in the log.
pub(super) fn panicked(trace: &Trace, panic: &(dyn Any + Send)) -> Error {
    let text = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (None, Some(text)) => text.clone(),
        (None, None) => "of no text".to_owned(),
    };
    let message = format!("internal error; audit-id {}", trace.audit_id());
    Error::new(Status::new(500, "InternalError", message), Panic(text))
}

pub(super) type Outcome = Result<Response, Refusal>;

/// The outcome of a request, with the facts collected about it.
pub(super) struct Walked {
    pub(super) class: Option<Arc<Class>>,
    pub(super) outcome: Outcome,
}

impl Walked {
    /// A request that was refused before it was routed.
    pub(super) fn nowhere(refusal: impl Into<Refusal>) -> Walked {
        Walked {
            class: None,
            outcome: Err(refusal.into()),
        }
    }
}

//! What clients may read about a failed call.
//!
//! Messages that distinguish closed, filtered and open ports let their readers explore the network of this server. If its
//! clients are on other machines, they read one general sentence, and the cause is in the log under the same ID.

use super::{Outbound, OutboundError};
use crate::work;
use std::fmt::Display;

/// What a condition says about a failed call whose cause is only logged.
pub(crate) const HIDDEN_IN_CONDITION: &str =
    "the call failed; the cause is in the log of the server";

impl Outbound {
    /// Returns what the client of the current request may read about a failed call. Errors in the configuration are
    /// always shown.
    pub(crate) fn disclose(&self, error: &OutboundError) -> String {
        match error {
            OutboundError::Target(_) | OutboundError::Trust(_) => error.to_string(),
            _ if self.shows_causes() => error.to_string(),
            _ => hidden(&error.without_page()),
        }
    }

    /// Returns the cause of a failed call alone, as far as the client of a request may read it.
    pub(crate) fn disclose_cause(&self, error: &OutboundError, audit_id: &str) -> String {
        match error {
            OutboundError::Target(_) | OutboundError::Trust(_) => error.to_string(),
            _ if !self.shows_causes() => hidden_under(Some(audit_id), &error.without_page()),
            OutboundError::Unreachable { why, .. } | OutboundError::Broken { why, .. } => {
                why.clone()
            }
            other => other.to_string(),
        }
    }

    /// Returns what the client of the current request may read about an answer that cannot be used.
    pub(crate) fn disclose_answer(&self, why: &str) -> String {
        match self.shows_causes() {
            true => why.to_owned(),
            false => hidden(&why),
        }
    }

    /// Returns what may be written into a condition of an object, `of`, about a failed call. The text is the same each
    /// time, so that a condition changes only if its status does.
    pub(crate) fn disclose_in_condition(&self, of: &str, error: &OutboundError) -> String {
        match error {
            OutboundError::Target(_) | OutboundError::Trust(_) => error.to_string(),
            _ if self.shows_causes() => error.to_string(),
            _ => {
                let cause = error.without_page();
                tracing::warn!(target: "bareboat_server::outbound", of, cause, "a call failed");
                HIDDEN_IN_CONDITION.to_owned()
            }
        }
    }

    /// Returns whether clients may read why a call failed.
    pub(crate) fn shows_causes(&self) -> bool {
        self.reach.shows_causes()
    }
}

/// Logs a cause, and returns the sentence that refers to it.
fn hidden(cause: &dyn Display) -> String {
    let id = work::audit_id();
    hidden_under(id.as_deref(), cause)
}

/// Logs a cause under the ID of a request, and returns the sentence that refers to it.
pub(crate) fn hidden_under(audit_id: Option<&str>, cause: &dyn Display) -> String {
    let made;
    let audit_id = match audit_id {
        Some(id) => id,
        // Work without a request of its own, such as the events of a watch.
        None => {
            made = crate::random::uuid().to_string();
            made.as_str()
        }
    };
    tracing::warn!(
        target: "bareboat_server::outbound",
        audit_id,
        cause = %cause,
        "a call to another server failed"
    );
    format!("the call failed; the cause is in the log of the server under audit-id {audit_id}")
}

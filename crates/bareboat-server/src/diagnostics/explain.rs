//! Log lines about requests that were refused, failed or took long.
//!
//! A Status may quote the request body, so not all of it may be logged. For a request whose body was read, causes are
//! logged as field and reason, and the message only if the server wrote all of it. For confidential resources
//! (`bareboat_api::is_confidential`) neither is logged.

use super::trace::{Stage, Trace, resource};
use crate::request::info::RequestInfo;
use crate::server::Error;
use bareboat_api::Status;
use std::error::Error as _;
use std::fmt::Write as _;
use std::time::Duration;

/// Maximum bytes of a logged text.
const LONGEST: usize = 512;
/// Maximum number of logged causes.
const MOST_CAUSES: usize = 8;

/// Logs a line about a request that was carried out: its target, the code of its answer, fields of this line only, and
/// the time it took.
macro_rules! log_request {
    ($level:ident, $trace:expr, $code:expr, $elapsed:expr, { $($own:tt)* }, $message:literal) => {{
        let (trace, what) = ($trace, What::new($trace));
        tracing::$level!(
            target: "bareboat_server::request",
            parent: trace.span(),
            audit_id = trace.audit_id(),
            verb = what.verb,
            resource = what.resource,
            namespace = what.namespace,
            name = what.name,
            user = what.user,
            code = $code,
            $($own)*
            elapsed_ms = milliseconds($elapsed),
            stages = trace.times(),
            $message
        );
    }};
}

/// Logs, and notes for audit, why a request is refused (at debug), is not authenticated (at info) or fails (as an error).
pub(crate) fn refused(trace: &Trace, error: &Error) {
    let status = error.status();
    // A policy may refuse a request with 401, too.
    let unknown = status.code == 401 && !trace.has_passed(Stage::Authenticated);
    if let Some(audited) = trace.audited() {
        audited.refused(status, trace.has_passed(Stage::Read));
        if unknown {
            // In audit events of requests without a valid user: why the credentials were not accepted.
            audited.annotate("bareboat.dev/authentication-error", &why_unknown(error));
        }
    }
    match status.code {
        500.. => {
            if trace.report() {
                failed(trace, error);
            }
        }
        401 if unknown => {
            trace.report();
            tracing::info!(
                target: "bareboat_server::request",
                parent: trace.span(),
                audit_id = trace.audit_id(),
                why = why_unknown(error),
                "request not authenticated"
            );
        }
        code => {
            trace.report();
            tracing::debug!(
                target: "bareboat_server::request",
                parent: trace.span(),
                code,
                reason = %status.reason,
                stage = trace.doing(),
                status = message(trace, status),
                causes = causes(trace, status),
                "request refused"
            );
        }
    }
}

/// Logs a request that failed because of this server, or of one it called.
fn failed(trace: &Trace, error: &Error) {
    let status = error.status();
    log_request!(
        error,
        trace,
        status.code,
        trace.started().elapsed(),
        {
            reason = %status.reason,
            stage = trace.doing(),
            status = message(trace, status),
            causes = chain(error),
        },
        "request failed"
    );
}

/// Logs an answer, made `elapsed` after the start, that is a failure without a log line yet, or that took longer than `slow`, unless the request
/// `is_patient` and may take any time.
pub(crate) fn answered(
    trace: &Trace,
    code: http::StatusCode,
    elapsed: Duration,
    slow: Option<Duration>,
    is_patient: impl FnOnce() -> bool,
) {
    let stage = trace.doing();
    trace.pass_after(Stage::Answered, elapsed);
    if !trace.is_reported() && code.is_client_error() {
        trace.report();
        tracing::debug!(
            target: "bareboat_server::request",
            parent: trace.span(),
            code = code.as_u16(),
            stage,
            "request refused"
        );
    }
    if !trace.is_reported() && code.is_server_error() {
        // Health checks log their own failures, and are called again and again.
        if trace.info().is_none_or(|info| info.is_resource) && trace.report() {
            let text = "the answer of another server, or one without a Status";
            failed(trace, &Status::new(code.as_u16(), "", text).into());
        }
        return;
    }
    let is_slow = slow.is_some_and(|slow| elapsed >= slow);
    if !is_slow || code.is_server_error() || is_patient() {
        return;
    }
    log_request!(warn, trace, code.as_u16(), elapsed, {}, "slow request");
}

/// The target of a request, for a log line.
struct What<'a> {
    verb: &'a str,
    resource: String,
    namespace: &'a str,
    name: &'a str,
    user: &'a str,
}

impl<'a> What<'a> {
    fn new(trace: &'a Trace) -> What<'a> {
        let info = trace.info();
        let text = |text: fn(&RequestInfo) -> &str| info.map_or("", text);
        What {
            verb: text(|info| &info.verb),
            resource: match info {
                Some(info) if info.is_resource => resource(info),
                Some(info) => info.path.clone(),
                None => String::new(),
            },
            namespace: text(|info| &info.namespace),
            name: text(|info| &info.name),
            user: trace.user().map_or("", |user| &user.name),
        }
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Returns whether nothing that depends on the body may be logged.
fn is_confidential(trace: &Trace) -> bool {
    trace.info().is_none_or(|info| {
        bareboat_api::is_confidential(&info.group, &info.resource, &info.subresource)
    })
}

/// Returns the message of a Status, unless it may quote the body.
pub(super) fn message(trace: &Trace, status: &Status) -> String {
    if trace.has_passed(Stage::Read) {
        // Answers without a reason contain messages of decoders and converters.
        let quotes = matches!(status.code, 400 | 422) || status.reason.is_empty();
        if quotes || is_confidential(trace) {
            return "(not logged: it may quote the body)".to_owned();
        }
    }
    cut(&status.message)
}

/// Returns the causes of a Status as field and reason, because their messages quote values.
pub(super) fn causes(trace: &Trace, status: &Status) -> Option<String> {
    let details = status.details.as_ref()?;
    if details.causes.is_empty() || is_confidential(trace) {
        return None;
    }
    let mut text = String::new();
    for cause in details.causes.iter().take(MOST_CAUSES) {
        let gap = if text.is_empty() { "" } else { ", " };
        let _ = write!(text, "{gap}{} {}", cause.field, cause.reason);
    }
    if details.causes.len() > MOST_CAUSES {
        let _ = write!(text, " and {} more", details.causes.len() - MOST_CAUSES);
    }
    Some(cut(&text))
}

/// Returns why a request was not authenticated (401), for the log and the audit annotation: the errors behind the
/// Status, or that no accepted credentials were sent.
fn why_unknown(error: &Error) -> String {
    chain(error).unwrap_or_else(|| "no credentials of a kind that is accepted".to_owned())
}

/// Returns the errors behind a Status, outermost first.
pub(super) fn chain(error: &Error) -> Option<String> {
    let mut cause = error.source()?;
    let mut text = cause.to_string();
    while let Some(next) = cause.source() {
        let _ = write!(text, ": {next}");
        cause = next;
    }
    Some(cut(&text))
}

/// Cuts a text to the maximum length.
fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

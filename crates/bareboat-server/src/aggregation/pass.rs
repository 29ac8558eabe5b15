//! Forwards a request to the server of its group and version.
//!
//! The request is authorized already. Answers without an upstream answer are plain text, as in Kubernetes.

use super::Route;
use crate::flow::Unread;
use crate::proxy::{Passing, ProxyFailure, REDIRECT, UNREACHABLE};
use crate::reply::{Response, plain_text};
use crate::request::ask::Ask;
use crate::request::body::LIMIT;
use crate::request::query::{Query, percent_decode};
use crate::revocation::End;
use crate::server::state::State;
use crate::spans::TRACEPARENT;
use crate::verbs::escape;
use bareboat_api::Status;
use http::StatusCode;

/// Answers a request for a group and version of another server. `until` is when the answer must be complete; streams
/// have no such time.
pub(crate) async fn answer(
    state: &State,
    ask: &Ask,
    body: Unread,
    route: &Route,
    until: Option<std::time::Instant>,
) -> Result<Response, Status> {
    if !route.available {
        return Ok(unavailable());
    }
    state.may_pass_on(ask)?;
    let recorder = ask.trace.recorder();
    let call =
        recorder.map(|recorder| recorder.call(format!("aggregated server {}", route.root())));
    let context = call
        .as_ref()
        .map(|call| (TRACEPARENT, call.context().to_string()));
    let passing = Passing {
        method: ask.method.clone(),
        target: target(ask.uri.path(), &ask.query)?,
        headers: &ask.headers,
        user: &ask.user,
        came: ask.came,
        host: ask.host(),
        audit_id: ask.audit_id(),
        streams: ask.streams,
        standing: ask.standing.clone(),
        remarks: context.as_slice(),
        audited: ask.trace.audited().cloned(),
        upgrade: ask.upgrade.clone(),
        body: body.into_stream(),
        limit: LIMIT,
        until,
        end: match ask.info.verb.as_str() {
            "watch" => End::Plain,
            _ => End::Broken,
        },
    };
    let forwarded = state.proxy.forward(&route.backend.remote, passing).await;
    if let Some(call) = call {
        call.end(forwarded.is_err());
    }
    let failure = match forwarded {
        Ok(response) => return Ok(response),
        Err(failure) => failure,
    };
    let (code, text) = match failure {
        ProxyFailure::Other(status) => return Err(status),
        ProxyFailure::Redirect(_) => (StatusCode::BAD_GATEWAY, REDIRECT.to_owned()),
        ProxyFailure::Unreachable(status) => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("{}\n", status.message),
        ),
        ProxyFailure::Broken(_, why) => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("{UNREACHABLE}{why}\n"),
        ),
        ProxyFailure::Unusable(status) => {
            tracing::debug!(route = %route.root(), %status, "a server cannot be called");
            return Ok(unavailable());
        }
    };
    Ok(plain_text(code, text))
}

fn unavailable() -> Response {
    plain_text(StatusCode::SERVICE_UNAVAILABLE, "service unavailable\n")
}

/// Builds path and query anew from their decoded parts, so that the other server reads them as this one did.
fn target(path: &str, query: &Query) -> Result<String, Status> {
    let odd = || {
        Status::bad_request(
            "the path of a request to another server may not have empty segments, dots, or escaped slashes",
        )
    };
    let mut out = String::with_capacity(path.len() + 32);
    for segment in path.trim_matches('/').split('/') {
        let decoded = percent_decode(segment).ok_or_else(odd)?;
        let is_odd = matches!(&*decoded, "" | "." | "..")
            || decoded.contains(['/', '\\'])
            || decoded.contains(|c: char| c.is_control());
        if is_odd {
            return Err(odd());
        }
        out.push('/');
        escape(&decoded, &mut out);
    }
    if path.ends_with('/') {
        out.push('/');
    }
    for (index, (name, value)) in query.iter().enumerate() {
        out.push(if index == 0 { '?' } else { '&' });
        escape_query(name, &mut out);
        out.push('=');
        escape_query(value, &mut out);
    }
    Ok(out)
}

fn escape_query(text: &str, out: &mut String) {
    use std::fmt::Write as _;
    for byte in text.bytes() {
        match byte {
            b' ' => out.push('+'),
            byte if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {
                out.push(byte as char);
            }
            byte => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
}

#[cfg(test)]
mod tests;

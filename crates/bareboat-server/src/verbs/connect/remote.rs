//! Requests to subresources that a remote server answers: their path, and headers about the object.

use super::KindRequest;
use crate::proxy::{Passing, Remark, Remote};
use crate::reply::Response;
use crate::request::body::{LIMIT, RequestBody};
use crate::request::info::RequestInfo;
use crate::revocation::End;
use bareboat_api::Status;
use bareboat_storage::Entry;
use http::{HeaderName, Uri};
use std::fmt::Write as _;

/// Header with the uid of the object, because the name may have been reused.
const UID: HeaderName = HeaderName::from_static("bareboat-object-uid");
/// Header with the resourceVersion of the object at the time of the request.
const RESOURCE_VERSION: HeaderName = HeaderName::from_static("bareboat-object-resource-version");

/// Passes a request on to the server that answers for the subresource.
pub(super) async fn pass_on(
    call: &KindRequest,
    remote: &Remote,
    entry: &Entry,
    uri: &Uri,
    body: RequestBody,
) -> Result<Response, Status> {
    let ask = &call.ask;
    call.state.may_pass_on(ask)?;
    let remarks: [Remark; 2] = [
        (UID, entry.facets().uid.to_string()),
        (RESOURCE_VERSION, entry.revision().to_string()),
    ];
    let passing = Passing {
        method: ask.method.clone(),
        target: target(&ask.info, uri),
        headers: &ask.headers,
        user: &ask.user,
        came: ask.came,
        host: ask.host(),
        audit_id: ask.audit_id(),
        streams: ask.streams,
        standing: ask.standing.clone(),
        remarks: &remarks,
        audited: ask.trace.audited().cloned(),
        upgrade: ask.upgrade.clone(),
        body,
        limit: LIMIT,
        until: None,
        end: End::Broken,
    };
    call.state.proxy.pass_on(remote, passing).await
}

/// Builds path and query from the parsed and authorized request, not from the bytes sent.
fn target(info: &RequestInfo, uri: &Uri) -> String {
    let mut out = String::with_capacity(128);
    let root: &[&str] = match info.group.as_str() {
        "" => &["api", &info.version],
        group => &["apis", group, &info.version],
    };
    let within: &[&str] = match info.namespace.as_str() {
        "" => &[],
        namespace => &["namespaces", namespace],
    };
    let what = [
        info.resource.as_str(),
        info.name.as_str(),
        info.subresource.as_str(),
    ];
    let rest = info.rest.iter().map(|segment| segment.as_str());
    let segments = root.iter().chain(within).copied().chain(what).chain(rest);
    for segment in segments {
        out.push('/');
        escape(segment, &mut out);
    }
    // A trailing slash below a subresource may be significant.
    if !info.rest.is_empty() && uri.path().ends_with('/') {
        out.push('/');
    }
    if let Some(query) = uri.query() {
        out.push('?');
        out.push_str(query);
    }
    out
}

/// Escapes a segment of a path.
pub(crate) fn escape(segment: &str, out: &mut String) {
    for byte in segment.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:@!$&'()*+,;=".contains(&byte) {
            out.push(byte as char);
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

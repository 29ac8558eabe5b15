//! Requests to subresources that are connections: handed to a program, or passed on to somebody else.
//!
//! That the caller may was decided before, and how a request is passed on is `proxy`'s work. Here it is found out whether
//! there is such a thing, and what the other side is told about it.

use super::Call;
use crate::flow::Unread;
use crate::kinds::catalog::Catalog;
use crate::kinds::computed::{Access, Computed, Question};
use crate::kinds::connector::{Connection, Visit};
use crate::proxy::{Passing, Remark, Remote};
use crate::reply::Response;
use crate::request::ask::Ask;
use crate::request::body::{LIMIT, RequestBody};
use crate::request::info::RequestInfo;
use crate::server::state::State;
use bareboat_api::Status;
use bareboat_api::kind::{Kind, SubresourceRole, Verb};
use bareboat_storage::Entry;
use http::{HeaderMap, HeaderName, header};
use std::fmt::Write as _;
use std::sync::Arc;

/// Tells the other side which object is meant, for it may have been made anew under the same name.
const UID: HeaderName = HeaderName::from_static("bareboat-object-uid");
/// Tells the other side how new the object was when the request was passed on.
const RESOURCE_VERSION: HeaderName = HeaderName::from_static("bareboat-object-resource-version");

/// Whether a request is for a connection, which may last.
pub(crate) fn connects(catalog: &Catalog, info: &RequestInfo) -> bool {
    if info.subresource.is_empty() {
        return false;
    }
    let table = catalog.table();
    let serving = table.find(&info.group, &info.resource);
    serving.is_some_and(|serving| is_connection(serving.kind(), info))
}

pub(super) fn is_connection(kind: &Kind, info: &RequestInfo) -> bool {
    let version = kind.version(&info.version);
    let part = version.and_then(|version| version.subresource(&info.subresource));
    part.is_some_and(|part| matches!(part.role, SubresourceRole::Connect { .. }))
}

/// Answers a request for a connection of an object out of the store.
pub(super) async fn stored(call: &Call, body: Unread) -> Result<Response, Status> {
    let (ask, info) = (&call.ask, &call.ask.info);
    check(&call.served.kind, ask)?;
    let connection = call.served.connection(&info.version, &info.subresource);
    let connection = connection.ok_or_else(Status::no_such_route)?;
    let entry = call.served.resource().get(&call.key());
    let entry = entry.ok_or_else(|| call.not_found())?;
    let body = body.into_stream();
    match connection {
        Connection::Program(program) => {
            let object = call.served.object(&entry, call.version).await?;
            program(Visit {
                question: question(&call.state, ask),
                object: Some(object),
                request: request(ask, body),
            })
            .await
        }
        Connection::Remote(remote) => pass_on(call, remote, &entry, body).await,
    }
}

/// Answers a request for a connection of a kind without a store.
pub(super) async fn computed(
    state: &Arc<State>,
    ask: &Ask,
    body: Unread,
    computed: &Computed,
) -> Result<Response, Status> {
    check(computed.kind(), ask)?;
    let visit = Visit {
        question: question(state, ask),
        object: None,
        request: request(ask, body.into_stream()),
    };
    computed.do_connect(visit).await
}

/// Whether the kind has such a connection, and the connection the verb.
fn check(kind: &Kind, ask: &Ask) -> Result<(), Status> {
    let info = &ask.info;
    let version = kind.version(&info.version);
    let part = version.and_then(|version| version.subresource(&info.subresource));
    let Some((part, SubresourceRole::Connect { paths })) = part.map(|part| (part, &part.role))
    else {
        return Err(Status::no_such_route());
    };
    let named = !info.name.is_empty() && (!kind.namespaced() || !info.namespace.is_empty());
    if !named || (!info.rest.is_empty() && !paths) {
        return Err(Status::no_such_route());
    }
    let verb = Verb::ALL.into_iter().find(|verb| verb.name() == info.verb);
    if !verb.is_some_and(|verb| part.verbs.has(verb)) {
        return Err(Status::method_not_allowed());
    }
    // Behind such a path might be anything, whatever the caller was authorized for.
    let odd = |segment: &str| {
        matches!(segment, "" | "." | "..")
            || segment.contains(['/', '\\'])
            || segment.contains(|c: char| c.is_control())
    };
    if info.rest.iter().any(|segment| odd(segment)) {
        return Err(Status::bad_request(
            "the path below the subresource may not have empty segments, dots, or escaped slashes",
        ));
    }
    Ok(())
}

pub(super) fn question(state: &Arc<State>, ask: &Ask) -> Question {
    let info = &ask.info;
    Question {
        user: ask.user.clone(),
        version: info.version.clone(),
        namespace: info.namespace.clone(),
        name: info.name.clone(),
        subresource: info.subresource.clone(),
        access: Access {
            authn: state.authn.clone(),
            authorizer: state.authorizer.clone(),
            objects: state.clone(),
        },
    }
}

/// The request as HTTP has it.
fn request(ask: &Ask, body: RequestBody) -> http::Request<RequestBody> {
    let mut request = http::Request::new(body);
    *request.method_mut() = ask.method.clone();
    *request.uri_mut() = ask.uri.clone();
    *request.headers_mut() = HeaderMap::clone(&ask.headers);
    if let Some(upgrade) = &ask.upgrade {
        request.extensions_mut().insert(upgrade.clone());
    }
    request
}

async fn pass_on(
    call: &Call,
    remote: &Remote,
    entry: &Entry,
    body: RequestBody,
) -> Result<Response, Status> {
    let ask = &call.ask;
    let remarks: [Remark; 2] = [
        (UID, entry.facets().uid.to_string()),
        (RESOURCE_VERSION, entry.revision().to_string()),
    ];
    let host = ask.headers.get(header::HOST);
    let host = host.and_then(|host| host.to_str().ok());
    let passing = Passing {
        method: ask.method.clone(),
        target: target(&ask.info, &ask.uri),
        headers: &ask.headers,
        user: &ask.user,
        came: ask.came,
        host: host.or_else(|| ask.uri.authority().map(|host| host.as_str())),
        audit_id: &ask.audit_id,
        remarks: &remarks,
        upgrade: ask.upgrade.clone(),
        body,
        limit: LIMIT,
    };
    call.state.proxy.pass_on(remote, passing).await
}

/// The path and query of the request, written anew from what was understood and authorized.
fn target(info: &RequestInfo, uri: &http::Uri) -> String {
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
    // Below a subresource a slash at the end may make a difference.
    if !info.rest.is_empty() && uri.path().ends_with('/') {
        out.push('/');
    }
    if let Some(query) = uri.query() {
        out.push('?');
        out.push_str(query);
    }
    out
}

fn escape(segment: &str, out: &mut String) {
    for byte in segment.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:@!$&'()*+,;=".contains(&byte) {
            out.push(byte as char);
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

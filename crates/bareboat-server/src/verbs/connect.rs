//! Requests to connect subresources: answered by a function, or proxied to a remote server.
//!
//! The request is authorized already, and `proxy` forwards it. This module checks that the subresource exists, and
//! builds the request for its handler.

#[cfg(feature = "outbound")]
mod remote;

#[cfg(feature = "dynamic")]
pub(crate) use remote::escape;

use super::KindRequest;
use super::visibility;
use crate::admission::{Alone, options_of_connection};
use crate::authz::Authorized;
use crate::flow::{Buffered, Unread};
use crate::kinds::calls::Calls;
use crate::kinds::catalog::Catalog;
use crate::kinds::computed::{ANY_RESOURCE, Access, Computed, Question, Warned};
use crate::kinds::connector::{Connection, Finds, Visit};
use crate::kinds::stored_kind::StoredKind;
use crate::reply::Response;
use crate::request::ask::Ask;
use crate::request::body::RequestBody;
use crate::request::info::RequestInfo;
use crate::revocation::{End, guard};
use crate::server::state::State;
use bareboat_api::Status;
use bareboat_api::admission::Operation;
use bareboat_api::kind::{Kind, Origin, Subresource, SubresourceRole, Verb};
use http::{HeaderMap, Uri};
use std::sync::Arc;

/// Returns whether a request is for a connect subresource, which may be long-running.
pub(crate) fn connects(catalog: &Catalog, info: &RequestInfo) -> bool {
    if info.subresource.is_empty() {
        return false;
    }
    let table = catalog.table();
    let serving = table.find(&info.group, &info.resource);
    serving.is_some_and(|serving| is_connection(serving.kind(), info))
}

pub(super) fn is_connection(kind: &Kind, info: &RequestInfo) -> bool {
    let part = part(kind, info);
    part.is_some_and(|part| matches!(part.role, SubresourceRole::Connect { .. }))
}

/// Answers a connect request to a stored object.
pub(super) async fn to_stored_kind(call: &KindRequest, body: Unread) -> Result<Response, Status> {
    let (ask, info) = (&call.ask, &call.ask.info);
    check(&call.served.kind, ask)?;
    refuse_dry_run(&call.state, ask, &call.served.kind)?;
    let connection = call.served.connection(&info.version, &info.subresource);
    let connection = connection.ok_or_else(Status::no_such_route)?;
    let entry = match connection {
        Connection::Program(_, Finds::Nothing) => None,
        _ => {
            let entry = call.served.resource().get(&call.key());
            let entry = entry.ok_or_else(|| call.not_found())?;
            visibility::check(call, &entry).await?;
            Some(entry)
        }
    };
    let uri = admit(&call.state, ask, &call.served.kind).await?;
    match connection {
        Connection::Program(program, _) => {
            let object = match &entry {
                Some(entry) => Some(call.served.object(entry, call.version).await?),
                None => None,
            };
            let visit = Visit {
                question: question(&call.state, ask),
                object,
                request: request(ask, uri, body.into_stream()),
                calls: Calls::new(&call.state, ask),
            };
            let response = ask.parting.complete(program(visit).await)?;
            Ok(guard(response, ask.standing.as_ref(), End::Broken))
        }
        Connection::Remote(remote) => {
            let entry = entry.ok_or_else(|| call.not_found())?;
            remote::pass_on(call, remote, &entry, &uri, body.into_stream()).await
        }
    }
}

/// Returns whether a function or another server answers the writes of a kind.
pub(super) fn handles_writes(served: &StoredKind, ask: &Ask, verb: Verb) -> bool {
    !ask.stores
        && !matches!(verb, Verb::Get | Verb::List | Verb::Watch)
        && served.connection(&ask.info.version, "").is_some()
}

/// Passes a write to the function or the server that answers the writes of the kind. Its body is read first, because writes are not
/// streams.
pub(super) async fn write(call: KindRequest, body: Unread) -> Result<Response, Status> {
    let Buffered {
        bytes,
        seat,
        room: _room,
    } = body.read_to_pass_on().await?;
    let calls = Calls::new(&call.state, &call.ask).with_seat(seat.as_ref());
    let threads = call.state.threads.of(&call.ask.trace);
    let body = RequestBody::Memory(bytes);
    // Calls of the server's own, such as those of authorizers and converters, find the seat there.
    let work = async move { answer_write(&call, body, calls).await };
    threads.carry_out(seat, work).await
}

async fn answer_write(
    call: &KindRequest,
    body: RequestBody,
    calls: Calls,
) -> Result<Response, Status> {
    let (ask, info) = (&call.ask, &call.ask.info);
    let connection = call.served.connection(&info.version, "");
    let connection = connection.ok_or_else(Status::no_such_route)?;
    let entry = match info.name.is_empty() {
        true => None,
        false => call.served.resource().get(&call.key()),
    };
    if let Some(entry) = &entry {
        visibility::check(call, entry).await?;
    }
    match connection {
        Connection::Program(program, _) => {
            let object = match &entry {
                Some(entry) => Some(call.served.object(entry, call.version).await?),
                None => None,
            };
            let visit = Visit {
                question: question(&call.state, ask),
                object,
                request: request(ask, ask.uri.clone(), body),
                calls,
            };
            ask.parting.complete(program(visit).await)
        }
        Connection::Remote(remote) => {
            let entry = entry.ok_or_else(|| call.not_found())?;
            // This server only passes the answer on.
            calls.leave();
            remote::pass_on(call, remote, &entry, &ask.uri, body).await
        }
    }
}

/// Answers a connect request to a kind without a store.
pub(super) async fn computed(
    state: &Arc<State>,
    ask: &Arc<Authorized<Ask>>,
    body: Unread,
    computed: &Computed,
) -> Result<Response, Status> {
    check(computed.kind(), ask)?;
    refuse_dry_run(state, ask, computed.kind())?;
    let uri = admit(state, ask, computed.kind()).await?;
    let visit = Visit {
        question: question(state, ask),
        object: None,
        request: request(ask, uri, body.into_stream()),
        calls: Calls::new(state, ask),
    };
    let response = ask.parting.complete(computed.do_connect(visit).await)?;
    Ok(guard(response, ask.standing.as_ref(), End::Broken))
}

/// Answers a request for any resource of a group that a function serves.
pub(super) async fn open(
    state: &Arc<State>,
    ask: &Arc<Authorized<Ask>>,
    body: Unread,
    computed: Arc<Computed>,
) -> Result<Response, Status> {
    let known = computed.kind().version(&ask.info.version).is_some();
    // The name of the kind that stands for all of them is no resource.
    if !known || ask.info.resource == ANY_RESOURCE {
        return Err(Status::no_such_route());
    }
    let Buffered {
        bytes,
        seat,
        room: _room,
    } = body.read_to_pass_on().await?;
    let visit = Visit {
        question: question(state, ask),
        object: None,
        request: request(ask, ask.uri.clone(), RequestBody::Memory(bytes)),
        calls: Calls::new(state, ask).with_seat(seat.as_ref()),
    };
    let threads = state.threads.of(&ask.trace);
    let work = async move { computed.do_open(visit).await };
    ask.parting.complete(threads.carry_out(seat, work).await)
}

/// Runs admission on a connection. Returns its URI with its options, such as those of PodExecOptions, which plug-ins may
/// have changed. Subresources that are only read, such as `log`, are not admitted.
async fn admit(
    state: &Arc<State>,
    ask: &Arc<Authorized<Ask>>,
    kind: &Arc<Kind>,
) -> Result<Uri, Status> {
    let threads = state.threads.of(&ask.trace);
    let (state, ask, kind) = (state.clone(), ask.clone(), kind.clone());
    // Expressions of hooks may be large work; a connection has no seat.
    let work = async move { admit_options(&state, &ask, &kind).await };
    threads.carry_out(None, work).await
}

async fn admit_options(state: &Arc<State>, ask: &Ask, kind: &Kind) -> Result<Uri, Status> {
    let part = part(kind, &ask.info);
    let options = part.and_then(|part| options_of_connection(kind, part, ask, &state.messages));
    let Some(mut options) = options else {
        return Ok(ask.uri.clone());
    };
    let alone = Alone {
        state,
        ask,
        kind,
        operation: Operation::Connect,
        shape: None,
        options: &(),
        dry_run: false,
    };
    alone.admit(&mut options.object).await?;
    options.uri(ask)
}

/// Refuses `dryRun` for connections of built-in kinds, which do not know it. Subresources that are only read ignore it.
fn refuse_dry_run(state: &State, ask: &Ask, kind: &Kind) -> Result<(), Status> {
    if kind.origin != Origin::BuiltIn || ask.query.get("dryRun").is_none() {
        return Ok(());
    }
    let part = part(kind, &ask.info);
    match part.and_then(|part| options_of_connection(kind, part, ask, &state.messages)) {
        Some(_) => Err(Status::bad_request("dryRun is not supported")),
        None => Ok(()),
    }
}

fn part<'a>(kind: &'a Kind, info: &RequestInfo) -> Option<&'a Subresource> {
    let version = kind.version(&info.version);
    version.and_then(|version| version.subresource(&info.subresource))
}

/// Checks that the kind has the subresource, and that the subresource has the verb.
fn check(kind: &Kind, ask: &Ask) -> Result<(), Status> {
    let info = &ask.info;
    let part = part(kind, info);
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
    // A server may resolve such a path to a target other than the authorized one.
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

pub(super) fn question(state: &Arc<State>, ask: &Arc<Authorized<Ask>>) -> Question {
    let info = &ask.info;
    Question {
        user: ask.user.clone(),
        version: info.version.clone(),
        resource: info.resource.clone(),
        namespace: info.namespace.clone(),
        name: info.name.clone(),
        subresource: info.subresource.clone(),
        query: ask.query.clone(),
        warnings: Warned(ask.clone()),
        access: Access {
            authn: state.authn.clone(),
            authorizer: state.authorizer.clone(),
            objects: state.clone(),
        },
    }
}

/// Builds the request for a function that answers whole paths.
pub(crate) fn visit(state: &Arc<State>, ask: &Arc<Authorized<Ask>>, body: RequestBody) -> Visit {
    Visit {
        question: question(state, ask),
        object: None,
        request: request(ask, ask.uri.clone(), body),
        calls: Calls::new(state, ask),
    }
}

/// Builds the HTTP request for the handler.
fn request(ask: &Ask, uri: Uri, body: RequestBody) -> http::Request<RequestBody> {
    let mut request = http::Request::new(body);
    *request.method_mut() = ask.method.clone();
    *request.uri_mut() = uri;
    *request.headers_mut() = HeaderMap::clone(&ask.headers);
    if let Some(upgrade) = &ask.upgrade {
        request.extensions_mut().insert(upgrade.clone());
    }
    request
}

#[cfg(not(feature = "outbound"))]
mod remote {
    //! A build without calls to other servers has no remote handlers.

    use super::KindRequest;
    use crate::proxy::Remote;
    use crate::reply::Response;
    use crate::request::body::RequestBody;
    use bareboat_api::Status;
    use bareboat_storage::Entry;
    use http::Uri;

    pub(super) async fn pass_on(
        _: &KindRequest,
        remote: &Remote,
        _: &Entry,
        _: &Uri,
        _: RequestBody,
    ) -> Result<Response, Status> {
        match *remote {}
    }
}

#[cfg(test)]
mod tests;

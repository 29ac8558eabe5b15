//! The path of every request: all steps in order.

use super::error::Error;
use super::fresh;
use super::head::{audit_id, deadline, without_credentials};
use super::paths;
use super::refusal::{Outcome, Refusal, Walked, panicked};
use super::state::State;
use crate::aggregation;
use crate::audit::Arrival;
use crate::authn::{self, BadCredentials, ConnectionIdentity, Evidence, Peer};
use crate::connections::{Close, Line};
use crate::diagnostics::{self, Stage, Trace};
use crate::flow::{self, Class, Unread, Visitor};
use crate::metrics::{Answered, Attempt, RemoteLabels, Sight};
use crate::reply::{self, Response, compress_if_wanted, status_response};
use crate::request::ask::{Ask, Basis, Came, Warnings};
use crate::request::body::RequestBody;
use crate::request::info::RequestInfo;
use crate::request::query::Query;
use crate::revocation::Stream;
use crate::{authz, verbs};
use bareboat_api::Status;
use bareboat_api::kind::User;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::Instrument as _;

/// The header with the uid of the flow schema of a request.
const FLOW_SCHEMA: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
/// The header with the uid of the priority level of a request.
const PRIORITY_LEVEL: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");
/// The longest time a request waits in a queue.
const MOST_PATIENCE: Duration = Duration::from_secs(60);

/// The origin of a request.
pub(crate) enum Door {
    /// Over a connection, perhaps with a client certificate.
    Socket(Arc<SocketClient>),
    /// An in-process request.
    InProcess(Arc<User>),
    /// An in-process request to the raw endpoint.
    Raw(Arc<User>),
}

/// The client of a connection.
pub(crate) struct SocketClient {
    /// Address and certificates of the client.
    pub(crate) peer: Peer,
    /// The user of the client certificate.
    pub(crate) identity: ConnectionIdentity,
    /// The connection in the table of open connections.
    pub(crate) line: Arc<Line>,
}

impl Door {
    /// Returns the origin of a request, for headers to other servers.
    fn came(&self) -> Came {
        match self {
            Door::InProcess(_) | Door::Raw(_) => Came::default(),
            Door::Socket(client) => Came {
                from: client.peer.address.map(|address| address.ip()),
                encrypted: client.peer.encrypted,
            },
        }
    }
}

/// Answers one request; turns every failure into an answer.
pub(crate) async fn serve(
    state: Arc<State>,
    door: &Door,
    request: http::Request<RequestBody>,
) -> Response {
    let _under_way = state.under_way.enter();
    let (mut head, body) = request.into_parts();
    let headers = Arc::new(std::mem::take(&mut head.headers));
    let trace = Arc::new(Trace::new(
        audit_id(&headers),
        &head.method,
        head.uri.path(),
    ));
    let query = Query::parse(head.uri.query().unwrap_or(""));
    let sight = Sight::of(&head.method, &headers, query.as_ref().ok());
    let pretty = query
        .as_ref()
        .ok()
        .and_then(|query| query.get("pretty"))
        .map(str::to_owned);
    let arrived = Arrived {
        head,
        headers: headers.clone(),
        trace: trace.clone(),
        body,
    };
    let walk = walk(&state, door, arrived, query).instrument(trace.span().clone());
    let walk = AssertUnwindSafe(walk);
    let mut has_panicked = false;
    let Walked { class, outcome } = match futures_util::FutureExt::catch_unwind(walk).await {
        Ok(walked) => walked,
        Err(panic) => {
            has_panicked = true;
            Walked::nowhere(panicked(&trace, panic.as_ref()))
        }
    };
    let terminated = outcome.as_ref().err().is_some_and(Refusal::is_termination);
    let mut response = match outcome {
        Ok(response) => response,
        Err(Refusal::Error(error)) => {
            diagnostics::refused(&trace, &error);
            let status = error.status();
            status_response(&headers, pretty.as_deref(), &state.messages, status)
        }
        Err(Refusal::Response(response)) => *response,
    };
    let out = response.headers_mut();
    if let Some((schema, level)) = class.as_ref().and_then(|class| class.uids()) {
        out.insert(FLOW_SCHEMA, schema.clone());
        out.insert(PRIORITY_LEVEL, level.clone());
    }
    if let Ok(id) = HeaderValue::from_str(trace.audit_id()) {
        out.insert("audit-id", id);
    }
    if !out.contains_key(header::CACHE_CONTROL) {
        out.insert(
            header::CACHE_CONTROL,
            HeaderValue::from_static("no-cache, private"),
        );
    }
    let remote = trace.route().zip(trace.info());
    let remote = remote.map(|(route, info)| RemoteLabels::of(route, info));
    let answered = Answered {
        sight,
        info: trace.info(),
        remote: remote.as_ref(),
        started: trace.started(),
        terminated,
    };
    let table = state.catalog.table();
    state
        .metrics
        .requests
        .observe(&table, &answered, &mut response);
    drop(table);
    let upgraded = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    let is_patient = || match trace.route() {
        Some(_) => upgraded || trace.info().is_some_and(RequestInfo::is_long_running),
        None => trace.info().is_some_and(|info| is_patient(&state, info)),
    };
    if let Some(audited) = trace.audited() {
        let lasts = is_patient();
        if !lasts {
            audited.took(trace.started().elapsed(), || trace.times());
        }
        match has_panicked {
            true => audited.panicked().await,
            false => audited.answered(response.status(), lasts).await,
        }
        if lasts {
            response.body_mut().record(audited.clone());
        }
    }
    diagnostics::answered(&trace, response.status(), state.limits.slow, is_patient);
    response
}

/// A request before it is processed.
struct Arrived {
    head: http::request::Parts,
    headers: Arc<HeaderMap>,
    trace: Arc<Trace>,
    body: RequestBody,
}

async fn walk(
    state: &Arc<State>,
    door: &Door,
    arrived: Arrived,
    query: Result<Query, crate::request::query::MalformedQuery>,
) -> Walked {
    let Ok(query) = query else {
        return Walked::nowhere(Status::bad_request("the query string cannot be decoded"));
    };
    let head = &arrived.head;
    let info = match RequestInfo::parse(&head.method, head.uri.path(), &query) {
        Ok(info) => Arc::new(info),
        Err(_) => return Walked::nowhere(Status::bad_request("the path cannot be decoded")),
    };
    arrived.trace.parsed(&info);
    let mut class = None;
    let outcome = rooms(state, door, arrived, query, info, &mut class).await;
    Walked { class, outcome }
}

/// Passes a request through the steps of the server (the rooms of ARCHITECTURE.md), in order.
async fn rooms(
    state: &Arc<State>,
    door: &Door,
    arrived: Arrived,
    query: Query,
    info: Arc<RequestInfo>,
    class: &mut Option<Arc<Class>>,
) -> Outcome {
    let Arrived {
        mut head,
        headers,
        trace,
        body,
    } = arrived;
    fresh::barrier(state, &query, &info).await?;
    let user = authenticate(state, door, &headers, &info).await;
    if let Some(audit) = &state.audit {
        let arrival = Arrival {
            uri: &head.uri,
            headers: &headers,
            info: &info,
            user: user.as_ref().ok(),
            from: door.came().from,
        };
        audit.begin(&trace, arrival).await?;
    }
    let authenticated = user?;
    trace.pass(Stage::Authenticated);
    let user = authn::impersonate(state.authorizer.as_ref(), authenticated.clone(), &headers);
    let user = user.await?;
    trace.acts_as(&user);
    // The raw endpoint is about stored objects.
    let remote = match door {
        Door::Raw(_) => None,
        _ => state.aggregation.route(&info),
    };
    let streams = match &remote {
        Some(_) => may_stream(&info, &headers),
        None => is_patient(state, &info),
    };
    // What another server answers takes no seat, but its answer has a deadline unless it is a stream.
    let patient = streams || remote.is_some();
    let deadline = deadline(state, &query, &info, streams)?;
    let seat = match door {
        Door::Socket(_) if remote.is_some() => {
            *class = state.flow.classify(&user, &info);
            None
        }
        Door::Socket(_) => {
            *class = state.flow.classify(&user, &info);
            let begins_watch = class.is_some() && info.verb == "watch";
            // Health is answered under any load.
            let free = !info.is_resource && paths::is_public(&info.path);
            let wants = !free && (!patient || begins_watch);
            match wants {
                true => Some(enter(state, class.as_ref(), &user, &info, &query, deadline).await?),
                false => None,
            }
        }
        // The server's own controllers never wait.
        _ => None,
    };
    trace.skip(Stage::Flow);
    let sent = headers.clone();
    let mut ask = Ask {
        method: head.method,
        uri: head.uri,
        info,
        query,
        headers: without_credentials(&state.credential_headers, headers),
        user,
        came: door.came(),
        upgrade: head.extensions.remove(),
        trace: trace.clone(),
        deadline,
        warnings: Warnings::default(),
        raw: matches!(door, Door::Raw(_)),
        standing: None,
        basis: Basis::at(state.store.visible()),
    };
    if let (true, Door::Socket(client)) = (streams, door) {
        // Before the check, so that a change during it is not missed.
        let (user, info) = (ask.user.clone(), ask.info.clone());
        let stream = Stream::new(
            client.clone(),
            &sent,
            &state.credential_headers,
            authenticated,
            user,
            info,
        );
        ask.standing = Some(state.revocations.register(state, stream));
    }
    drop(sent);
    let ask = flow::maybe_away(seat.as_ref(), authorize(state, ask)).await?;
    trace.pass(Stage::Authorized);
    let body = Unread::new(body, seat);
    if let Some(route) = remote {
        trace.goes_to(route.clone());
        let until = (!streams).then_some(deadline);
        return Ok(aggregation::answer(state, &ask, body, &route, until).await?);
    }
    if patient {
        return answer(state, ask, body).await;
    }
    match tokio::time::timeout_at(deadline.into(), answer(state, ask, body)).await {
        Ok(outcome) => outcome,
        Err(_) => {
            Err(Status::timeout("request did not complete within the allotted timeout").into())
        }
    }
}

/// Returns whether a request may take any time: it takes no seat and has no deadline.
fn is_patient(state: &State, info: &RequestInfo) -> bool {
    info.is_long_running() || verbs::connects(&state.catalog, info)
}

/// Returns whether a request to another server may be answered by a stream or an upgraded connection. This server does
/// not know the other one's subresources.
fn may_stream(info: &RequestInfo, headers: &HeaderMap) -> bool {
    info.is_long_running()
        || !info.subresource.is_empty() && info.subresource != "status"
        || headers.contains_key(header::UPGRADE)
}

/// Takes a seat, or waits for one.
async fn enter(
    state: &State,
    class: Option<&Arc<Class>>,
    user: &Arc<User>,
    info: &Arc<RequestInfo>,
    query: &Query,
    deadline: Instant,
) -> Result<Arc<flow::Seat>, Refusal> {
    let left = deadline.saturating_duration_since(Instant::now());
    let visitor = Visitor {
        user: user.clone(),
        info: info.clone(),
        objects: flow::objects(&state.catalog, info, query),
        patience: (left / 4).min(MOST_PATIENCE),
    };
    Ok(state.flow.enter(class, visitor).await?)
}

/// Returns the user. Health and version need no credentials.
async fn authenticate(
    state: &State,
    door: &Door,
    headers: &HeaderMap,
    info: &RequestInfo,
) -> Result<Arc<User>, Refusal> {
    let client = match door {
        Door::InProcess(user) | Door::Raw(user) => return Ok(user.clone()),
        Door::Socket(client) => client,
    };
    let found = identify(state, client, headers).await;
    state.metrics.authenticated(match &found {
        Ok(Some(_)) => Attempt::Success,
        Ok(None) => Attempt::Failure,
        Err(_) => Attempt::Error,
    });
    match found {
        Ok(Some((user, proof))) => {
            if proof == Proof::Certificate {
                state.metrics.certificate_used(client.peer.ends());
            }
            admit(&client.line, user, info)
        }
        Ok(None) if accepts_anonymous(state, info) => Ok(Arc::new(authn::anonymous())),
        Ok(None) => Err(Status::unauthorized().into()),
        Err(bad) => Err(unauthenticated(bad)),
    }
}

/// Returns whether a request without credentials is accepted.
pub(crate) fn accepts_anonymous(state: &State, info: &RequestInfo) -> bool {
    state.anonymous.accepts(&info.path, paths::is_public)
}

/// How a user was authenticated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proof {
    /// By the certificate of the connection.
    Certificate,
    /// By credentials in the request, such as a token.
    Request,
}

/// Returns the user of a request over a connection; `None` without credentials.
pub(crate) async fn identify(
    state: &State,
    client: &SocketClient,
    headers: &HeaderMap,
) -> Result<Option<(Arc<User>, Proof)>, BadCredentials> {
    let peer = &client.peer;
    if let Some(Ok(user)) = &client.identity.current(&state.authn, peer).user {
        // A connection may outlive the certificate it was opened with.
        if peer.has_expired() {
            return Err(BadCredentials(format!(
                "the client certificate of {} has expired",
                user.name
            )));
        }
        return Ok(Some((user.clone(), Proof::Certificate)));
    }
    let translated = authn::with_bearer(headers)?;
    let evidence = Evidence {
        headers: translated.as_ref().unwrap_or(headers),
        peer,
        objects: state,
    };
    let found = state.authn.authenticate(&evidence).await?;
    Ok(found.map(|user| (Arc::new(authn::authenticated(user)), Proof::Request)))
}

fn unauthenticated(bad: BadCredentials) -> Refusal {
    Error::new(Status::unauthorized(), bad).into()
}

/// Marks a connection as authenticated, while the limit allows it. Health checks are always answered, and anonymous
/// users do not count as authenticated.
fn admit(line: &Line, user: Arc<User>, info: &RequestInfo) -> Result<Arc<User>, Refusal> {
    let is_anonymous = user.is_in("system:unauthenticated");
    if line.is_known() || is_anonymous || line.know() || paths::is_public(&info.path) {
        return Ok(user);
    }
    line.close(Close::Soon);
    Err(Status::too_many_requests("Too many connections, please try again later.", 1).into())
}

async fn authorize(state: &State, ask: Ask) -> Result<authz::Authorized<Ask>, Refusal> {
    let is_public = !ask.info.is_resource && paths::is_public(&ask.info.path);
    let authorizer: &dyn authz::Authorizer = match is_public {
        true => &authz::AllowAll,
        false => state.authorizer.as_ref(),
    };
    let (user, info) = (ask.user.clone(), ask.info.clone());
    let Some(audited) = ask.trace.audited().cloned() else {
        return Ok(authz::authorize(authorizer, &user, &info, ask).await?);
    };
    let (decision, outcome) = authz::authorize_explained(authorizer, &user, &info, ask).await;
    audited.decided(&decision);
    Ok(outcome?)
}

/// Runs the verb, and completes the answer.
async fn answer(state: &Arc<State>, ask: authz::Authorized<Ask>, body: Unread) -> Outcome {
    if !ask.info.is_resource {
        return Ok(paths::answer(state, ask, body.into_seat()).await?);
    }
    let headers = ask.headers.clone();
    // Answers of other servers are forwarded unchanged, compressed or not.
    let compress = ask.info.verb != "watch" && !verbs::connects(&state.catalog, &ask.info);
    let ask = Arc::new(ask);
    let response = verbs::route(state, ask.clone(), body).await;
    let pretty = ask.query.get("pretty");
    let mut response = match response {
        Ok(response) => response,
        Err(status) => {
            let error = Error::from(status);
            diagnostics::refused(&ask.trace, &error);
            status_response(&headers, pretty, &state.messages, error.status())
        }
    };
    if let Some(audited) = ask.trace.audited()
        && audited.wants_answer()
        && let Some(bytes) = response.body().as_full()
    {
        audited.answers(bytes);
    }
    reply::add_warnings(&mut response, ask.warnings.take());
    Ok(if compress {
        compress_if_wanted(&headers, response, &state.threads)
    } else {
        response
    })
}

/// Returns the answer for a connection that cannot be served at all.
pub(super) fn unavailable() -> Response {
    let mut response = reply::plain_text(
        StatusCode::SERVICE_UNAVAILABLE,
        "the server is starting or stopping\n",
    );
    response
        .headers_mut()
        .insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
    response
}

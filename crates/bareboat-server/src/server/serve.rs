//! The path of every request: all steps in order.

use super::authenticate::authenticate;
use super::deadline::{deadline, late, until};
use super::door::Door;
use super::error::Error;
use super::fresh;
use super::head::{AUDIT_ID, Wanted, audit_id, without_credentials};
use super::paths;
use super::refusal::{Outcome, Refusal, Walked, panicked};
use super::state::State;
use super::stopping::{self, Parting, stopping};
use crate::aggregation;
use crate::annex::{self, Claimed};
use crate::audit::Arrival;
use crate::authn;
use crate::diagnostics::{self, Stage, Trace};
use crate::flow::{self, Class, Unread, Visitor};
use crate::metrics::{Answered, RemoteLabels, Sight};
use crate::reply::{self, Response, compress_if_wanted, status_response};
use crate::request::ask::{Ask, Basis, Warnings};
use crate::request::body::RequestBody;
use crate::request::info::RequestInfo;
use crate::request::query::Query;
use crate::revocation::Stream;
use crate::spans::Recorder;
use crate::{authz, verbs};
use bareboat_api::Status;
use bareboat_api::kind::User;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// The header with the uid of the flow schema of a request.
const FLOW_SCHEMA: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
/// The header with the uid of the priority level of a request.
const PRIORITY_LEVEL: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");
const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache, private");
/// The longest time a request waits in a queue.
const MOST_PATIENCE: Duration = Duration::from_secs(60);

/// Answers one request; turns every failure into an answer.
pub(crate) async fn serve(
    state: Arc<State>,
    door: &Door,
    request: http::Request<RequestBody>,
) -> Response {
    let under_way = state.under_way.enter();
    // The count comes first: the shutdown closes the server, and then looks at the count again.
    if matches!(door, Door::Socket(_)) && state.is_closed() {
        return stopping::closed();
    }
    let is_late = state.is_ending();
    let (mut head, body) = request.into_parts();
    let headers = Arc::new(std::mem::take(&mut head.headers));
    let recorder = state.spans.as_ref();
    let recorder = recorder.and_then(|exporter| Recorder::start(exporter, &headers));
    let trace = Trace::new(audit_id(&headers), &head.method, head.uri.path());
    let trace = Arc::new(trace.recorded_by(recorder));
    let query = Query::parse(head.uri.query().unwrap_or(""));
    let sight = Sight::of(&head.method, &headers, query.as_ref().ok());
    let wanted = Wanted::of(&headers);
    let pretty = query
        .as_ref()
        .ok()
        .and_then(|query| query.get("pretty"))
        .map(str::to_owned);
    let arrived = Arrived {
        head,
        headers,
        trace: trace.clone(),
        body,
        is_late,
    };
    // Pinned where it is made: it is large, and every adapter would move it.
    let mut walk = pin!(walk(&state, door, arrived, query));
    let walk = poll_fn(|cx| {
        let polled = match trace.span().is_disabled() {
            true => walk.as_mut().poll(cx),
            false => trace.span().in_scope(|| walk.as_mut().poll(cx)),
        };
        if polled.is_pending() {
            trace.waits();
        }
        polled
    });
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
            let headers = wanted.into_headers();
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
        out.insert(AUDIT_ID, id);
    }
    if !out.contains_key(header::CACHE_CONTROL) {
        out.insert(header::CACHE_CONTROL, NO_CACHE);
    }
    let remote = trace.route().zip(trace.info());
    let remote = remote.map(|(route, info)| RemoteLabels::of(route, info));
    let took = trace.started().elapsed();
    let answered = Answered {
        sight,
        info: trace.info(),
        kind: trace.kind(),
        remote: remote.as_ref(),
        started: trace.started(),
        took,
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
            audited.took(took, || trace.times());
        }
        match has_panicked {
            true => audited.panicked().await,
            false => audited.answered(response.status(), lasts).await,
        }
        if lasts {
            response.body_mut().record(audited.clone());
        }
    }
    diagnostics::answered(
        &trace,
        response.status(),
        took,
        state.limits.slow,
        is_patient,
    );
    if let Some(recorder) = trace.recorder() {
        recorder.finish(&trace, response.status());
    }
    // The shutdown waits until a long answer was sent. Streams end by themselves, and programs may keep an answer for any time.
    if matches!(door, Door::Socket(_)) && !is_patient() {
        response.body_mut().keep_running(under_way);
    }
    response
}

/// A request before it is processed.
struct Arrived {
    head: http::request::Parts,
    headers: Arc<HeaderMap>,
    trace: Arc<Trace>,
    body: RequestBody,
    /// Whether the shutdown had begun.
    is_late: bool,
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
    let mut info = match RequestInfo::parse(&head.method, head.uri.path(), &query) {
        Ok(info) => info,
        Err(_) => return Walked::nowhere(Status::bad_request("the path cannot be decoded")),
    };
    let annexes = &state.annexes;
    let mut claimed = annex::claimed(annexes, &head.method, &info, &query, &arrived.headers);
    if let Some(claimed) = &mut claimed {
        info = std::mem::take(&mut claimed.claim.info);
    }
    let info = Arc::new(info);
    arrived.trace.parsed(&info);
    let mut class = None;
    let outcome = rooms(state, door, arrived, query, info, claimed, &mut class).await;
    Walked { class, outcome }
}

/// Passes a request through the steps of the server (the rooms of ARCHITECTURE.md), in order.
///
/// Steps that wait only for some requests are boxed: a future takes the memory of its largest step, and it is moved
/// several times for every request.
async fn rooms(
    state: &Arc<State>,
    door: &Door,
    arrived: Arrived,
    query: Query,
    info: Arc<RequestInfo>,
    claimed: Option<Claimed>,
    class: &mut Option<Arc<Class>>,
) -> Outcome {
    let Arrived {
        mut head,
        headers,
        trace,
        body,
        is_late,
    } = arrived;
    if fresh::is_needed(state, &query, &info) {
        Box::pin(fresh::barrier(state)).await?;
    }
    let user = authenticate(state, door, &headers, &info).await;
    if let Some(audit) = &state.audit {
        let arrival = Arrival {
            uri: &head.uri,
            headers: &headers,
            info: &info,
            user: user.as_ref().ok(),
            from: door.came().from,
        };
        Box::pin(audit.begin(&trace, arrival)).await?;
    }
    let authenticated = user?;
    trace.pass_soon(Stage::Authenticated);
    let user = match authn::wants_impersonation(&headers) {
        true => {
            let authorizer = state.authorizer.as_ref();
            Box::pin(authn::impersonate(
                authorizer,
                authenticated.clone(),
                &headers,
            ))
            .await?
        }
        false => authenticated.clone(),
    };
    trace.acts_as(&user);
    // The raw endpoint is about stored objects.
    let remote = match door {
        Door::Raw(_) => None,
        _ if claimed.is_some() => None,
        _ => state.aggregation.route(&info),
    };
    let streams = match (&remote, &claimed) {
        (_, Some(claimed)) => claimed.claim.streams,
        (Some(_), _) => may_stream(&info, &headers),
        (None, None) => is_patient(state, &info),
    };
    let parting = Parting::new(is_late, head.method.is_safe());
    // An annex ends its streams itself.
    let is_cut_off = streams && claimed.is_none() && info.verb != "watch";
    if parting.is_late() && (remote.is_some() || is_cut_off) {
        return Err(stopping().into());
    }
    // What another server answers takes no seat, but its answer has a deadline unless it is a stream.
    let patient = streams || remote.is_some();
    let deadline = deadline(state, &query, &info, streams, trace.started())?;
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
                true => {
                    let time = deadline.saturating_duration_since(trace.started());
                    Some(enter(state, class.as_ref(), &user, &info, &query, time).await?)
                }
                false => None,
            }
        }
        // The server's own controllers never wait.
        _ => None,
    };
    trace.skip(Stage::Flow);
    let stream_of = match door {
        // Only a stream needs its credentials again: without another owner, they are removed and nothing is copied.
        Door::Socket(client) if streams => Some((client, headers.clone())),
        _ => None,
    };
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
        stores: matches!(door, Door::Store(_)),
        streams,
        standing: None,
        parting,
        basis: Basis::at(state.store.visible()),
    };
    if let Some((client, sent)) = stream_of {
        let by_target = claimed.as_ref().is_none_or(|claimed| claimed.claim.judged);
        // Before the check, so that a change during it is not missed.
        let (user, info) = (ask.user.clone(), ask.info.clone());
        let stream = Stream::new(
            client.clone(),
            &sent,
            &state.credential_headers,
            authenticated,
            user,
            info,
            by_target,
        );
        ask.standing = Some(state.revocations.register(state, stream));
    }
    let target = ask.info.clone();
    let authorizer: &dyn authz::Authorizer = match &claimed {
        Some(claimed) if claimed.claim.authorizes => &authz::AllowAll,
        _ => authorizer(state, &target),
    };
    let ask = match authorize_now(authorizer, ask) {
        authz::Now::Decided(outcome) => outcome?,
        authz::Now::Later(ask) => {
            Box::pin(flow::maybe_away(seat.as_ref(), authorize(authorizer, ask))).await?
        }
    };
    trace.pass_soon(Stage::Authorized);
    let body = Unread::new(body, seat);
    if let Some(route) = remote {
        trace.goes_to(route.clone());
        let until = (!ask.streams).then_some(deadline);
        return Ok(Box::pin(aggregation::answer(state, &ask, body, &route, until)).await?);
    }
    if let Some(claimed) = &claimed {
        let mut answer = Box::pin(annex::answer(state, ask, body, claimed));
        return match patient {
            true => Ok(answer.await),
            false => until(deadline, answer.as_mut()).await.ok_or_else(late),
        };
    }
    if patient {
        return answer(state, ask, body).await;
    }
    let in_time = until(deadline, pin!(answer(state, ask, body))).await;
    in_time.unwrap_or_else(|| Err(late()))
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

/// Takes a seat, or waits for one for a part of the time that the request may take.
async fn enter(
    state: &State,
    class: Option<&Arc<Class>>,
    user: &Arc<User>,
    info: &Arc<RequestInfo>,
    query: &Query,
    time: Duration,
) -> Result<Arc<flow::Seat>, Refusal> {
    let visitor = Visitor {
        user: user.clone(),
        info: info.clone(),
        objects: flow::objects(&state.catalog, info, query),
        patience: (time / 4).min(MOST_PATIENCE),
    };
    Ok(state.flow.enter(class, visitor).await?)
}

/// Returns the authorizer of a request; public paths are allowed to everybody.
fn authorizer<'a>(state: &'a State, info: &RequestInfo) -> &'a dyn authz::Authorizer {
    match !info.is_resource && state.is_public(&info.path) {
        true => &authz::AllowAll,
        false => state.authorizer.as_ref(),
    }
}

/// Authorizes a request without waiting, which is nearly always possible.
fn authorize_now(authorizer: &dyn authz::Authorizer, ask: Ask) -> authz::Now<Ask> {
    if ask.trace.audited().is_some() {
        return authz::Now::Later(ask);
    }
    let (user, info) = (ask.user.clone(), ask.info.clone());
    authz::authorize_now(authorizer, &user, &info, ask)
}

async fn authorize(
    authorizer: &dyn authz::Authorizer,
    ask: Ask,
) -> Result<authz::Authorized<Ask>, Refusal> {
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
    if !ask.info.is_resource && state.webhook_paths.has(&ask.info.path) {
        let (bytes, _seat) = body.read().await?;
        return Ok(state.webhook_paths.answer(&ask.info.path, &bytes).await?);
    }
    if !ask.info.is_resource {
        return Ok(Box::pin(paths::answer(state, ask, body.into_seat())).await?);
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

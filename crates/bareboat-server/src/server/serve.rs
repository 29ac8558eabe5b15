//! The corridor: every request walks through here, one room a line.

use super::paths;
use super::state::State;
use crate::authn::{self, BadCredentials, Evidence, Peer};
use crate::connections::{Close, Line};
use crate::flow::Unread;
use crate::metrics::{Answered, Attempt, Sight};
use crate::reply::{self, Response, compress_if_wanted, status_response};
use crate::request::ask::{Ask, Came, Warnings};
use crate::request::body::RequestBody;
use crate::request::duration;
use crate::request::info::RequestInfo;
use crate::request::query::Query;
use crate::{authz, verbs};
use bareboat_api::Status;
use bareboat_api::kind::User;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

/// How a request came in.
pub(crate) enum Door {
    /// Over a connection, which may have proved who is at its other end.
    Socket {
        /// What the connection showed.
        peer: Peer,
        /// Who it belongs to, where certificates tell.
        user: Option<Result<Arc<User>, BadCredentials>>,
        /// The connection among all others.
        line: Arc<Line>,
    },
    /// From inside the process.
    InProcess(Arc<User>),
    /// From inside the process, to objects as they are stored.
    Storage(Arc<User>),
}

impl Door {
    /// Where a request came from, as others are told.
    fn came(&self) -> Came {
        match self {
            Door::InProcess(_) | Door::Storage(_) => Came::default(),
            Door::Socket { peer, .. } => Came {
                from: peer.address.map(|address| address.ip()),
                encrypted: peer.encrypted,
            },
        }
    }
}

/// Answers one request, whatever happens inside.
pub(crate) async fn serve(
    state: Arc<State>,
    door: &Door,
    request: http::Request<RequestBody>,
) -> Response {
    let _under_way = state.under_way.enter();
    let started = Instant::now();
    let (mut head, body) = request.into_parts();
    let headers = Arc::new(std::mem::take(&mut head.headers));
    let audit_id = audit_id(&headers);
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
        audit_id: audit_id.clone(),
        body,
    };
    let walk = AssertUnwindSafe(walk(&state, door, arrived, query));
    let (label, outcome) = match futures_util::FutureExt::catch_unwind(walk).await {
        Ok(walked) => walked,
        Err(_) => (
            None,
            Err(Status::internal("the request made the server stumble; its log tells more").into()),
        ),
    };
    let terminated = outcome.as_ref().err().is_some_and(Refusal::is_termination);
    let mut response = match outcome {
        Ok(response) => response,
        Err(Refusal::Status(status)) => {
            status_response(&headers, pretty.as_deref(), &state.messages, &status)
        }
        Err(Refusal::Response(response)) => *response,
    };
    let out = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&audit_id) {
        out.insert("audit-id", id);
    }
    if !out.contains_key(header::CACHE_CONTROL) {
        out.insert(
            header::CACHE_CONTROL,
            HeaderValue::from_static("no-cache, private"),
        );
    }
    let answered = Answered {
        sight,
        info: label.as_deref(),
        started,
        terminated,
    };
    let table = state.catalog.table();
    state
        .metrics
        .requests
        .observe(&table, &answered, &mut response);
    drop(table);
    response
}

/// Why a request did not get what it asked for.
enum Refusal {
    Status(Box<Status>),
    Response(Box<Response>),
}

impl Refusal {
    /// Whether a limit or a deadline of the server ended the request.
    fn is_termination(&self) -> bool {
        let code = match self {
            Refusal::Status(status) => status.code,
            Refusal::Response(response) => response.status().as_u16(),
        };
        matches!(code, 429 | 504)
    }
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Refusal {
        Refusal::Status(Box::new(status))
    }
}

impl From<Box<Response>> for Refusal {
    fn from(response: Box<Response>) -> Refusal {
        Refusal::Response(response)
    }
}

type Outcome = Result<Response, Refusal>;

/// A request as it came in.
struct Arrived {
    head: http::request::Parts,
    headers: Arc<HeaderMap>,
    audit_id: String,
    body: RequestBody,
}

async fn walk(
    state: &Arc<State>,
    door: &Door,
    arrived: Arrived,
    query: Result<Query, crate::request::query::MalformedQuery>,
) -> (Option<Arc<RequestInfo>>, Outcome) {
    let query = match query {
        Ok(query) => query,
        Err(_) => {
            return (
                None,
                Err(Status::bad_request("the query string cannot be decoded").into()),
            );
        }
    };
    let head = &arrived.head;
    let info = match RequestInfo::parse(&head.method, head.uri.path(), &query) {
        Ok(info) => Arc::new(info),
        Err(_) => {
            return (
                None,
                Err(Status::bad_request("the path cannot be decoded").into()),
            );
        }
    };
    let label = Some(info.clone());
    (label, rooms(state, door, arrived, query, info).await)
}

/// The rooms, in order.
async fn rooms(
    state: &Arc<State>,
    door: &Door,
    arrived: Arrived,
    query: Query,
    info: Arc<RequestInfo>,
) -> Outcome {
    let Arrived {
        mut head,
        headers,
        audit_id,
        body,
    } = arrived;
    let user = authenticate(state, door, &headers, &info).await?;
    let user = authn::impersonate(state.authorizer.as_ref(), user, &headers).await?;
    // What may take as long as it likes neither takes a seat from others nor has a deadline.
    let patient = info.is_long_running() || verbs::connects(&state.catalog, &info);
    let seat = match door {
        Door::Socket { .. } if !patient => Some(state.flow.enter(&info)?),
        _ => None,
    };
    let deadline = deadline(state, &query, &info, patient)?;
    let ask = Ask {
        method: head.method,
        uri: head.uri,
        info,
        query,
        headers: without_credentials(headers),
        user,
        came: door.came(),
        upgrade: head.extensions.remove(),
        audit_id,
        deadline,
        warnings: Warnings::default(),
        as_stored: matches!(door, Door::Storage(_)),
    };
    let ask = authorize(state, ask).await?;
    let body = Unread::new(body, seat);
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

/// Who asks. Health and version are for everybody.
async fn authenticate(
    state: &State,
    door: &Door,
    headers: &HeaderMap,
    info: &RequestInfo,
) -> Result<Arc<User>, Refusal> {
    let (peer, connection, line) = match door {
        Door::InProcess(user) | Door::Storage(user) => return Ok(user.clone()),
        Door::Socket { peer, user, line } => (peer, user, line),
    };
    if let Some(Ok(user)) = connection {
        // A connection may outlive the certificate it was opened with.
        if peer.has_expired() {
            state.metrics.authenticated(Attempt::Error);
            tracing::info!(user = %user.name, "a client certificate has expired");
            return Err(Status::unauthorized().into());
        }
        state.metrics.authenticated(Attempt::Success);
        state.metrics.certificate_used(peer.ends());
        return admit(line, user.clone(), info);
    }
    let translated = match authn::with_bearer(headers) {
        Ok(translated) => translated,
        Err(bad) => {
            state.metrics.authenticated(Attempt::Error);
            return Err(unauthenticated(&bad));
        }
    };
    let evidence = Evidence {
        headers: translated.as_ref().unwrap_or(headers),
        peer,
        objects: state,
    };
    let found = state.authn.authenticate(&evidence).await;
    state.metrics.authenticated(match &found {
        Ok(Some(_)) => Attempt::Success,
        Ok(None) => Attempt::Failure,
        Err(_) => Attempt::Error,
    });
    match found {
        Ok(Some(user)) => admit(line, Arc::new(authn::authenticated(user)), info),
        Ok(None) if paths::is_public(&info.path) => Ok(Arc::new(authn::anonymous())),
        Ok(None) => Err(Status::unauthorized().into()),
        Err(bad) => Err(unauthenticated(&bad)),
    }
}

fn unauthenticated(BadCredentials(why): &BadCredentials) -> Refusal {
    tracing::info!(%why, "a request was not authenticated");
    Status::unauthorized().into()
}

/// Lets a connection in for good once it has shown who it belongs to, while there is room. Health is for everybody, and
/// the anonymous stay what they are.
fn admit(line: &Line, user: Arc<User>, info: &RequestInfo) -> Result<Arc<User>, Refusal> {
    let is_anonymous = user.is_in("system:unauthenticated");
    if line.is_known() || is_anonymous || line.know() || paths::is_public(&info.path) {
        return Ok(user);
    }
    line.close(Close::Soon);
    Err(Status::too_many_requests("Too many connections, please try again later.", 1).into())
}

async fn authorize(state: &State, ask: Ask) -> Result<authz::Authorized<Ask>, Refusal> {
    if !ask.info.is_resource && paths::is_public(&ask.info.path) {
        let (user, info) = (ask.user.clone(), ask.info.clone());
        return Ok(authz::authorize(&authz::AllowAll, &user, &info, ask).await?);
    }
    let (user, info) = (ask.user.clone(), ask.info.clone());
    Ok(authz::authorize(state.authorizer.as_ref(), &user, &info, ask).await?)
}

/// The verb, and what belongs to every answer.
async fn answer(state: &Arc<State>, ask: authz::Authorized<Ask>, body: Unread) -> Outcome {
    if !ask.info.is_resource {
        return Ok(paths::answer(state, ask, body.into_seat()).await?);
    }
    let headers = ask.headers.clone();
    // What is passed on is compressed by whoever says it, if at all.
    let compress = ask.info.verb != "watch" && !verbs::connects(&state.catalog, &ask.info);
    let ask = Arc::new(ask);
    let response = verbs::route(state, ask.clone(), body).await;
    let pretty = ask.query.get("pretty");
    let mut response = match response {
        Ok(response) => response,
        Err(status) => status_response(&headers, pretty, &state.messages, &status),
    };
    reply::add_warnings(&mut response, ask.warnings.take());
    Ok(if compress {
        compress_if_wanted(&headers, response, &state.threads)
    } else {
        response
    })
}

fn deadline(
    state: &State,
    query: &Query,
    info: &RequestInfo,
    patient: bool,
) -> Result<Instant, Refusal> {
    let writes = matches!(info.verb.as_str(), "create" | "update" | "patch" | "delete");
    let limit = if writes {
        state.limits.write
    } else {
        state.limits.request
    };
    let wished = if patient {
        None
    } else {
        duration::wished(query)?
    };
    Ok(Instant::now() + wished.map_or(limit, |wished| wished.min(limit)))
}

/// Nothing behind this point needs to know how somebody proved who they are.
fn without_credentials(mut headers: Arc<HeaderMap>) -> Arc<HeaderMap> {
    let secret = |name: &str| {
        name == "authorization" || name.starts_with("x-remote-") || name.starts_with("impersonate-")
    };
    if headers.contains_key(header::SEC_WEBSOCKET_PROTOCOL) {
        authn::hide_bearer_protocol(Arc::make_mut(&mut headers));
    }
    if !headers.keys().any(|name| secret(name.as_str())) {
        return headers;
    }
    let kept = headers.iter().filter(|(name, _)| !secret(name.as_str()));
    Arc::new(
        kept.map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
    )
}

/// The client's name for the request, or a fresh one.
fn audit_id(headers: &HeaderMap) -> String {
    let given = headers.get("audit-id").and_then(|id| id.to_str().ok());
    match given {
        Some(id) if !id.is_empty() && id.len() <= 64 => id.to_owned(),
        _ => uuid::Uuid::new_v4().to_string(),
    }
}

/// The answer to a connection that cannot be served at all.
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

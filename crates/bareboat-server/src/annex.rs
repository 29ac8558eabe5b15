//! Annexes: functions of the program that answer everything below some paths, such as views of other servers.
//!
//! A kind cannot describe such paths, because what they are about is only known to the annex. It reads the path and says
//! what a request is about ([`Claim`]); that is what the server authorizes, classifies, audits and logs. Everything else is as for
//! other requests: authentication, flow control, deadlines, warnings, compression, and the end of streams whose client loses its
//! permission.

use crate::authz::Authorized;
use crate::diagnostics;
use crate::flow::{Buffered, Unread};
use crate::kinds::connector::Visit;
use crate::reply::{self, Response, compress_if_wanted, status_response};
use crate::request::ask::Ask;
use crate::request::body::RequestBody;
use crate::request::info::RequestInfo;
use crate::request::query::Query;
use crate::revocation::{End, guard};
use crate::server::Error;
use crate::server::state::State;
use crate::verbs::visit;
use bareboat_api::Status;
use bareboat_api::kind::BoxFuture;
use http::{HeaderMap, Method};
use std::sync::Arc;

/// Answers everything below some paths.
///
/// ```
/// # mod bareboat { pub mod api { pub use bareboat_api::*; } pub mod server { pub use bareboat_server::*; } }
/// use bareboat::api::Status;
/// use bareboat::api::kind::BoxFuture;
/// use bareboat::server::reply::{Body, Response};
/// use bareboat::server::request::info::RequestInfo;
/// use bareboat::server::request::query::Query;
/// use bareboat::server::{Annex, Claim, Server, Visit};
/// use std::sync::Arc;
///
/// /// Everything below `/tides`. Who may `get` the path is allowed to ask.
/// struct Tides;
///
/// impl Annex for Tides {
///     fn claim(&self, _: &http::Method, info: &RequestInfo, _: &Query, _: &http::HeaderMap) -> Option<Claim> {
///         info.path.starts_with("/tides/").then(|| Claim {
///             info: info.clone(),
///             authorizes: false,
///             streams: false,
///             judged: true,
///         })
///     }
///
///     fn answer(&self, visit: Visit) -> BoxFuture<'static, Result<Response, Status>> {
///         Box::pin(async move {
///             let harbour = visit.request.uri().path().trim_start_matches("/tides/").to_owned();
///             Ok(Response::new(Body::full(format!("high water in {harbour} at noon\n"))))
///         })
///     }
/// }
///
/// let builder = Server::builder().annex(Arc::new(Tides));
/// # drop(builder);
/// ```
pub trait Annex: Send + Sync {
    /// Returns what a request is about, if this annex answers it. `info` is how the server reads the path. It is called for every
    /// request, so a look at the path must decide.
    fn claim(
        &self,
        method: &Method,
        info: &RequestInfo,
        query: &Query,
        headers: &HeaderMap,
    ) -> Option<Claim>;

    /// Answers a request that it claimed. The path is in the request of the visit.
    fn answer(&self, visit: Visit) -> BoxFuture<'static, Result<Response, Status>>;
}

/// What a request to an annex is about.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The target. The server authorizes it unless `authorizes` is set, and ends streams when it is no longer allowed.
    pub info: RequestInfo,
    /// Whether the annex authorizes the request itself, because one target does not describe it.
    pub authorizes: bool,
    /// Whether the answer is a stream: it takes no seat and has no deadline. The annex ends it when
    /// [`Life::ended`](crate::Life::ended) returns, because the server shuts down or the client lost its permission.
    pub streams: bool,
    /// Whether a stream is judged by its target when rights change. Otherwise the annex does that when
    /// [`Life::rights_changed`](crate::Life::rights_changed) says so; the credentials are judged in any case.
    pub judged: bool,
}

/// The annexes of a server.
pub(crate) type Annexes = Vec<Arc<dyn Annex>>;

/// A request that an annex answers.
pub(crate) struct Claimed {
    pub(crate) annex: Arc<dyn Annex>,
    pub(crate) claim: Claim,
}

/// Returns the annex of a request.
pub(crate) fn claimed(
    annexes: &Annexes,
    method: &Method,
    info: &RequestInfo,
    query: &Query,
    headers: &HeaderMap,
) -> Option<Claimed> {
    annexes.iter().find_map(|annex| {
        let claim = annex.claim(method, info, query, headers)?;
        Some(Claimed {
            annex: annex.clone(),
            claim,
        })
    })
}

async fn visited(
    state: &Arc<State>,
    ask: &Arc<Authorized<Ask>>,
    body: Unread,
    claimed: &Claimed,
) -> Result<Response, Status> {
    // A stream has no seat. Other requests keep theirs while they work, but not while their body arrives or another server answers.
    let (body, seat, _room) = match claimed.claim.streams {
        true => (body.into_stream(), None, None),
        false => {
            let Buffered { bytes, seat, room } = body.read_to_pass_on().await?;
            (RequestBody::Memory(bytes), seat, Some(room))
        }
    };
    let mut visit = visit(state, ask, body);
    visit.calls = visit.calls.with_seat(seat.as_ref());
    let answer = claimed.annex.answer(visit);
    let answer = match seat {
        // Calls of the server's own, such as those of authorizers, find the seat there.
        Some(seat) => {
            let threads = state.threads.of(&ask.trace);
            threads.carry_out_boxed(Some(seat), answer).await
        }
        None => answer.await,
    };
    ask.parting.complete(answer)
}

/// Lets an annex answer, and completes the answer.
pub(crate) async fn answer(
    state: &Arc<State>,
    ask: Authorized<Ask>,
    body: Unread,
    claimed: &Claimed,
) -> Response {
    let streams = claimed.claim.streams;
    let headers = ask.headers.clone();
    let ask = Arc::new(ask);
    let mut response = match visited(state, &ask, body, claimed).await {
        Ok(response) => response,
        Err(status) => {
            let error = Error::from(status);
            diagnostics::refused(&ask.trace, &error);
            let pretty = ask.query.get("pretty");
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
    if streams {
        return guard(response, ask.standing.as_ref(), End::Plain);
    }
    compress_if_wanted(&headers, response, &state.threads)
}

#[cfg(test)]
mod tests;

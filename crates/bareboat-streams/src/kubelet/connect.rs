//! Connections to a kubelet. SPDY is passed through; WebSockets are translated, or their tunnelled bytes are passed on.

use super::relay;
use crate::command;
use crate::options::{CommandOptions, escape};
use crate::ports::{PROTOCOL, TUNNELLED, offers_tunnel};
use crate::upgrade::{self, Asked, Io, SPDY, STREAM_PROTOCOL};
use crate::websocket::Tunnel;
use bareboat_api::Status;
use bareboat_server::reply::Response;
use bareboat_server::request::body::RequestBody;
use bareboat_server::{CallError, Calls, Hold, Upstream, Visit, carry};
use http::{HeaderValue, Method, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use std::time::Duration;

/// The maximum length of a kubelet's error text.
pub(crate) const ERROR_PAGE: usize = 10_000;
/// The timeout for reading a kubelet's error text.
const PAGE_PATIENCE: Duration = Duration::from_secs(10);
/// The protocol version of exec and attach that kubelets support.
const COMMAND_PROTOCOL: &str = "v4.channel.k8s.io";

/// Returns the path and query of a request to a kubelet.
pub(crate) fn target(path: &[&str], query: &str) -> String {
    let mut out = String::new();
    for segment in path {
        out.push('/');
        escape(segment, &mut out);
    }
    if !query.is_empty() {
        out.push('?');
        out.push_str(query);
    }
    out
}

/// Connects a client of exec or attach to a kubelet.
pub(super) async fn command(
    visit: Visit,
    to: &Upstream,
    target: &str,
    options: CommandOptions,
) -> Result<Response, Status> {
    let (asked, _) = upgrade::asked(&visit.request)?;
    if asked == Asked::Spdy {
        return pass_through(visit, to, target).await;
    }
    let (connection, _, hold) = open(&visit.calls, to, target, COMMAND_PROTOCOL).await?;
    let life = visit.calls.life();
    let session = options.clone();
    command::serve(&visit.request, options, life, move |streams| async move {
        let _hold = hold;
        relay::run(connection, session, streams).await
    })
}

/// Connects a client of port-forward to a kubelet.
pub(super) async fn ports(visit: Visit, to: &Upstream, target: &str) -> Result<Response, Status> {
    let (asked, client) = upgrade::asked(&visit.request)?;
    let headers = visit.request.headers();
    if asked == Asked::Spdy || !offers_tunnel(headers) {
        return pass_through(visit, to, target).await;
    }
    let (kubelet, protocol, hold) = open(&visit.calls, to, target, PROTOCOL).await?;
    let name = protocol.is_some().then_some(TUNNELLED);
    let response = upgrade::accept_websocket(headers, name)?;
    let life = visit.calls.life();
    tokio::spawn(async move {
        let _hold = hold;
        let both = tokio::join!(upgrade::take(client), upgrade::take(kubelet));
        if let (Some(client), Some(kubelet)) = both {
            // The messages of the WebSocket contain the bytes of the kubelet's connection.
            carry(Tunnel::new(client).await, kubelet, life.ended()).await;
        }
    });
    Ok(response)
}

/// Passes the bytes of the client's connection to the kubelet and back.
async fn pass_through(visit: Visit, to: &Upstream, target: &str) -> Result<Response, Status> {
    let forwarded = visit.calls.forward(to, target, visit.request).await;
    forwarded.map_err(|status| {
        let why = status
            .message
            .strip_prefix("error trying to reach service: ");
        match why {
            Some(why) => not_reached(why),
            None => status,
        }
    })
}

fn not_reached(why: &str) -> Status {
    Status::new(500, "", format!("error dialing backend: {why}"))
}

/// Upgrades a connection to a kubelet to SPDY. Returns the connection and the protocol that the kubelet chose.
async fn open(
    calls: &Calls,
    to: &Upstream,
    target: &str,
    protocol: &'static str,
) -> Result<(OnUpgrade, Option<HeaderValue>, Hold), Status> {
    let mut request = http::Request::new(RequestBody::default());
    *request.method_mut() = Method::POST;
    let headers = request.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static(SPDY));
    headers.insert(STREAM_PROTOCOL, HeaderValue::from_static(protocol));
    let sent = calls.send(to, target, request).await;
    let mut answer = sent.map_err(|error| match error {
        CallError::Busy(_) => Status::too_many_requests(error.to_string(), 1),
        error => not_reached(&error.to_string()),
    })?;
    if answer.response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(refused(answer.response).await);
    }
    let chosen = answer.response.headers().get(STREAM_PROTOCOL).cloned();
    let upgraded = hyper::upgrade::on(&mut answer.response);
    Ok((upgraded, chosen, answer.hold))
}

/// Returns the Status for a kubelet that refused to upgrade.
async fn refused(response: http::Response<Incoming>) -> Status {
    let code = response.status();
    let page = page(response).await;
    let text = format!("unable to upgrade connection: {page}");
    match code.as_u16() {
        400 => Status::bad_request(text),
        403 => Status::new(403, "Forbidden", text),
        404 => Status::new(404, "NotFound", text),
        _ => Status::new(500, "InternalError", text),
    }
}

/// Reads the start of an error page.
pub(crate) async fn page(response: http::Response<Incoming>) -> String {
    let body = Limited::new(response.into_body(), ERROR_PAGE);
    match tokio::time::timeout(PAGE_PATIENCE, body.collect()).await {
        Ok(Ok(page)) => String::from_utf8_lossy(&page.to_bytes()).trim().to_owned(),
        _ => String::new(),
    }
}

/// Waits for the upgraded connection to a kubelet.
pub(super) async fn take(connection: OnUpgrade) -> Option<Io> {
    upgrade::take(connection).await
}

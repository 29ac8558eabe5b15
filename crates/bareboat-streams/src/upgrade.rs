//! Upgrades of a client's connection: the requested protocol, and the response that accepts the upgrade.

use bareboat_api::Status;
use bareboat_server::reply::{Body, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use std::time::Duration;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

/// The timeout for the upgrade of a connection.
const HANDOVER: Duration = Duration::from_secs(30);
/// The header that negotiates protocols above SPDY.
pub(crate) const STREAM_PROTOCOL: HeaderName = HeaderName::from_static("x-stream-protocol-version");
pub(crate) const SPDY: &str = "SPDY/3.1";

/// An upgraded connection.
pub(crate) type Io = TokioIo<Upgraded>;

/// The protocol that a client requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Spdy,
    WebSocket,
}

fn tokens<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','))
        .map(str::trim)
        .filter(|token| !token.is_empty())
}

/// Returns the protocol and the connection of a request for an upgrade.
pub(crate) fn asked<B>(request: &http::Request<B>) -> Result<(Asked, OnUpgrade), Status> {
    let headers = request.headers();
    let required = || Status::bad_request("Upgrade request required");
    let upgrades =
        tokens(headers, &header::CONNECTION).any(|token| token.eq_ignore_ascii_case("upgrade"));
    let connection = request.extensions().get::<OnUpgrade>().cloned();
    let connection = connection.filter(|_| upgrades).ok_or_else(required)?;
    let mut wanted = tokens(headers, &header::UPGRADE);
    wanted
        .find_map(|token| match token {
            token if token.eq_ignore_ascii_case(SPDY) => Some(Asked::Spdy),
            token if token.eq_ignore_ascii_case("websocket") => Some(Asked::WebSocket),
            _ => None,
        })
        .map(|asked| (asked, connection))
        .ok_or_else(required)
}

/// Returns the WebSocket subprotocols that a client offers.
pub(crate) fn subprotocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    tokens(headers, &header::SEC_WEBSOCKET_PROTOCOL)
}

/// Returns the first known protocol in `X-Stream-Protocol-Version` (SPDY): `None` if the client offers none, 403 if it
/// offers only unknown ones.
pub(crate) fn stream_protocol(
    headers: &HeaderMap,
    known: &[&'static str],
) -> Result<Option<&'static str>, Status> {
    let offered: Vec<&str> = tokens(headers, &STREAM_PROTOCOL).collect();
    if offered.is_empty() {
        return Ok(None);
    }
    let find = |name: &&str| known.iter().find(|known| *known == name).copied();
    match offered.iter().find_map(find) {
        Some(name) => Ok(Some(name)),
        None => Err(Status::new(
            403,
            "Forbidden",
            format!(
                "unable to upgrade: unable to negotiate protocol: client supports {offered:?}, server accepts {known:?}"
            ),
        )),
    }
}

/// Returns the response that accepts SPDY.
pub(crate) fn accept_spdy(protocol: Option<&'static str>) -> Response {
    let mut response = switching(SPDY);
    if let Some(protocol) = protocol {
        let value = HeaderValue::from_static(protocol);
        response.headers_mut().insert(STREAM_PROTOCOL, value);
    }
    response
}

/// Returns the response that accepts a WebSocket.
pub(crate) fn accept_websocket(
    headers: &HeaderMap,
    protocol: Option<&str>,
) -> Result<Response, Status> {
    let key = headers.get(header::SEC_WEBSOCKET_KEY);
    let key = key.ok_or_else(|| Status::bad_request("mismatch challenge/response"))?;
    let version = headers.get(header::SEC_WEBSOCKET_VERSION);
    if version.is_none_or(|version| version != "13") {
        return Err(Status::bad_request("missing or bad WebSocket Version"));
    }
    let mut response = switching("websocket");
    let out = response.headers_mut();
    if let Ok(accept) = HeaderValue::from_str(&derive_accept_key(key.as_bytes())) {
        out.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    }
    if let Some(protocol) = protocol.and_then(|name| HeaderValue::from_str(name).ok()) {
        out.insert(header::SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    Ok(response)
}

fn switching(to: &'static str) -> Response {
    let mut response = http::Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static(to));
    response
}

/// Waits for the upgraded connection.
pub(crate) async fn take(connection: OnUpgrade) -> Option<Io> {
    match tokio::time::timeout(HANDOVER, connection).await {
        Ok(Ok(upgraded)) => Some(TokioIo::new(upgraded)),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a connection was not upgraded");
            None
        }
        Err(_) => None,
    }
}

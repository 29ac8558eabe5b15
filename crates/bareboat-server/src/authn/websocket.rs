//! Bearer tokens of WebSockets: browsers cannot set headers there, so a token may be one of the subprotocols.

use super::BadCredentials;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, HeaderValue, header};

/// A subprotocol with this prefix carries a token, in base64url without padding.
const BEARER_PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";

/// Returns whether a request asks to upgrade to a WebSocket.
pub(crate) fn wants_websocket(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    text(header::UPGRADE).is_some_and(|to| to.eq_ignore_ascii_case("websocket"))
        && text(header::CONNECTION).is_some_and(|connection| {
            let mut tokens = connection.split(',');
            tokens.any(|token| token.trim().eq_ignore_ascii_case("upgrade"))
        })
}

/// Returns the subprotocols a client offers, including a token.
pub(crate) fn subprotocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','))
        .map(str::trim)
        .filter(|name| !name.is_empty())
}

/// Removes tokens from the subprotocols of a WebSocket.
pub(crate) fn hide_bearer_protocol(headers: &mut HeaderMap) {
    let is_token = |name: &&str| name.starts_with(BEARER_PROTOCOL);
    if !subprotocols(headers).any(|name| is_token(&name)) {
        return;
    }
    let kept: Vec<&str> = subprotocols(headers)
        .filter(|name| !is_token(name))
        .collect();
    let kept = HeaderValue::try_from(kept.join(", "));
    headers.remove(header::SEC_WEBSOCKET_PROTOCOL);
    if let Ok(kept) = kept
        && !kept.is_empty()
    {
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, kept);
    }
}

/// Returns the token among the subprotocols of a WebSocket, if there is one.
///
/// There must be another subprotocol, because the server confirms one of them and must not repeat the token.
fn bearer(headers: &HeaderMap) -> Result<Option<String>, BadCredentials> {
    if !headers.contains_key(header::SEC_WEBSOCKET_PROTOCOL) || !wants_websocket(headers) {
        return Ok(None);
    }
    let bad = |why: &str| BadCredentials(why.to_owned());
    let mut token = None;
    let mut others = false;
    for name in subprotocols(headers) {
        let Some(encoded) = name.strip_prefix(BEARER_PROTOCOL) else {
            others = true;
            continue;
        };
        if token.is_some() {
            return Err(bad("several bearer tokens among the subprotocols"));
        }
        let decoded = URL_SAFE_NO_PAD.decode(encoded).ok();
        let text = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
        token = Some(text.ok_or_else(|| bad("a bearer token in a subprotocol is not base64url"))?);
    }
    let token = token.filter(|token| !token.is_empty());
    if token.is_some() && !others {
        return Err(bad("a bearer token is the only subprotocol"));
    }
    Ok(token)
}

/// Returns the headers with the token of the subprotocols as a bearer token, so that every authenticator finds it;
/// `None` if there is no token, or if there is an `Authorization` header.
pub(crate) fn with_bearer(headers: &HeaderMap) -> Result<Option<HeaderMap>, BadCredentials> {
    if headers.contains_key(header::AUTHORIZATION) {
        return Ok(None);
    }
    let Some(token) = bearer(headers)? else {
        return Ok(None);
    };
    let value = HeaderValue::try_from(format!("Bearer {token}"))
        .map_err(|_| BadCredentials("a bearer token has control characters".to_owned()))?;
    let mut headers = headers.clone();
    headers.insert(header::AUTHORIZATION, value);
    Ok(Some(headers))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(connection: &'static str, upgrade: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONNECTION, HeaderValue::from_static(connection));
        headers.insert(header::UPGRADE, HeaderValue::from_static(upgrade));
        headers
    }

    #[test]
    fn a_websocket_is_asked_for_by_two_headers_in_any_case() {
        assert!(wants_websocket(&asking("Upgrade", "websocket")));
        assert!(wants_websocket(&asking("keep-alive, upgrade", "WebSocket")));
        assert!(!wants_websocket(&asking("keep-alive", "websocket")));
        assert!(!wants_websocket(&asking("Upgrade", "SPDY/3.1")));
    }

    #[test]
    fn a_token_needs_another_subprotocol_beside_it() {
        let token = |protocols: &'static str| {
            let mut headers = asking("Upgrade", "websocket");
            let value = HeaderValue::from_static(protocols);
            headers.insert(header::SEC_WEBSOCKET_PROTOCOL, value);
            bearer(&headers).map_err(|bad| bad.0)
        };
        let beside = "base64url.bearer.authorization.k8s.io.czNjcmV0, x";
        assert_eq!(token(beside), Ok(Some("s3cret".to_owned())));
        assert_eq!(token("x"), Ok(None));
        assert!(token("base64url.bearer.authorization.k8s.io.czNjcmV0").is_err());
        assert!(token("base64url.bearer.authorization.k8s.io.!, x").is_err());
    }
}

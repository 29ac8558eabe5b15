//! Headers on their way out and back: what belongs to one connection only, what nobody but us may say, and who asks.

use super::Passing;
use crate::authn::hide_bearer_protocol;
use bareboat_api::Status;
use bareboat_api::kind::User;
use http::header::{self, Entry};
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use std::fmt::Write as _;

/// A header that the other side is sent beside those of the client.
pub(crate) type Remark = (HeaderName, String);

/// Headers that speak of one connection and end with it.
const HOP_BY_HOP: [HeaderName; 9] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// Whether the client wants to make something else of its connection.
pub(super) fn asks_to_upgrade(headers: &HeaderMap) -> bool {
    headers.contains_key(header::UPGRADE)
        && tokens(headers, &header::CONNECTION).any(|token| token.eq_ignore_ascii_case("upgrade"))
}

/// Whether an answer switches to what the client asked for.
pub(super) fn same_upgrade<B>(asked: &HeaderMap, answer: &Response<B>) -> bool {
    let wanted: Vec<&str> = tokens(asked, &header::UPGRADE).collect();
    let given: Vec<&str> = tokens(answer.headers(), &header::UPGRADE).collect();
    let was_wanted = |given: &&str| wanted.iter().any(|name| name.eq_ignore_ascii_case(given));
    !given.is_empty() && given.iter().all(was_wanted)
}

/// The headers of a request as the other side gets them.
pub(super) fn outward(passing: &Passing<'_>, upgrade: bool) -> Result<HeaderMap, Status> {
    let mut out = HeaderMap::with_capacity(passing.headers.len() + 16);
    let named = named_by_connection(passing.headers);
    for (name, value) in passing.headers {
        if !is_ours(name.as_str()) && !ends_here(name, &named) {
            add(&mut out, name.clone(), value.clone())?;
        }
    }
    // Where the body goes is said anew by whoever writes it, and so is whom the request is for.
    for name in [header::CONTENT_LENGTH, header::HOST, header::EXPECT] {
        out.remove(name);
    }
    if tokens(passing.headers, &header::TE).any(|token| token.eq_ignore_ascii_case("trailers")) {
        out.insert(header::TE, HeaderValue::from_static("trailers"));
    }
    hide_bearer_protocol(&mut out);
    if upgrade && let Some(protocol) = passing.headers.get(header::UPGRADE) {
        out.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        out.insert(header::UPGRADE, protocol.clone());
    }
    forwarded(passing, &mut out)?;
    identity(passing.user, &mut out)?;
    set(
        &mut out,
        HeaderName::from_static("audit-id"),
        passing.audit_id,
    )?;
    for (name, text) in passing.remarks {
        set(&mut out, name.clone(), text)?;
    }
    Ok(out)
}

/// The headers of an answer as the client gets them.
pub(super) fn homeward(mut headers: HeaderMap, upgrade: bool) -> HeaderMap {
    let protocol = headers.get(header::UPGRADE).cloned();
    let named = named_by_connection(&headers);
    let gone: Vec<HeaderName> = headers
        .keys()
        .filter(|name| ends_here(name, &named) || speaks_for_the_origin(name.as_str()))
        .cloned()
        .collect();
    for name in gone {
        headers.remove(name);
    }
    if upgrade && let Some(protocol) = protocol {
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::UPGRADE, protocol);
    }
    headers
}

/// Headers that say who asks, or prove it: only we say the former, and the latter is nobody else's business.
fn is_ours(name: &str) -> bool {
    // Some servers take an underscore for a dash.
    let name = name.replace('_', "-");
    matches!(
        name.as_str(),
        "authorization"
            | "proxy-authorization"
            | "cookie"
            | "cookie2"
            | "audit-id"
            | "forwarded"
            | "x-real-ip"
    ) || [
        "x-remote-",
        "impersonate-",
        "x-forwarded-",
        "bareboat-",
        "x-bareboat-",
    ]
    .iter()
    .any(|prefix| name.starts_with(prefix))
}

/// What only the server that a client believes to talk to may say: cookies, other origins, other addresses.
fn speaks_for_the_origin(name: &str) -> bool {
    matches!(
        name,
        "set-cookie" | "set-cookie2" | "alt-svc" | "clear-site-data"
    ) || name.starts_with("access-control-")
}

/// The headers that `Connection` says are about the connection.
fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    tokens(headers, &header::CONNECTION)
        .filter_map(|token| HeaderName::try_from(token).ok())
        .collect()
}

fn ends_here(name: &HeaderName, named: &[HeaderName]) -> bool {
    HOP_BY_HOP.contains(name) || named.contains(name)
}

fn tokens<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','))
        .map(str::trim)
        .filter(|token| !token.is_empty())
}

/// Where the request came from. What clients say about it themselves is dropped, but for the way it took before.
fn forwarded(passing: &Passing<'_>, out: &mut HeaderMap) -> Result<(), Status> {
    let way = HeaderName::from_static("x-forwarded-for");
    let mut hops: Vec<&str> = tokens(passing.headers, &way).collect();
    let from = passing.came.from.map(|address| address.to_string());
    hops.extend(from.as_deref());
    if !hops.is_empty() {
        set(out, way, &hops.join(", "))?;
    }
    if let Some(host) = passing.host {
        set(out, HeaderName::from_static("x-forwarded-host"), host)?;
    }
    if passing.came.from.is_some() {
        let scheme = if passing.came.encrypted {
            "https"
        } else {
            "http"
        };
        set(out, HeaderName::from_static("x-forwarded-proto"), scheme)?;
    }
    Ok(())
}

/// Who asks, as API servers tell each other.
fn identity(user: &User, out: &mut HeaderMap) -> Result<(), Status> {
    set(out, HeaderName::from_static("x-remote-user"), &user.name)?;
    if !user.uid.is_empty() {
        set(out, HeaderName::from_static("x-remote-uid"), &user.uid)?;
    }
    for group in &user.groups {
        add(
            out,
            HeaderName::from_static("x-remote-group"),
            value(group)?,
        )?;
    }
    for (key, values) in &user.extra {
        let name = format!("x-remote-extra-{}", escape_key(key));
        let name = HeaderName::try_from(name).map_err(|_| unspeakable())?;
        for text in values {
            add(out, name.clone(), value(text)?)?;
        }
    }
    Ok(())
}

/// A key of the user's extras in a form that may stand in the name of a header.
fn escape_key(key: &str) -> String {
    let mut out = String::with_capacity(key.len());
    for byte in key.bytes() {
        if byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte) {
            out.push(byte as char);
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

fn value(text: &str) -> Result<HeaderValue, Status> {
    HeaderValue::from_bytes(text.as_bytes()).map_err(|_| unspeakable())
}

fn set(out: &mut HeaderMap, name: HeaderName, text: &str) -> Result<(), Status> {
    let value = value(text)?;
    match out.try_entry(name) {
        Ok(Entry::Occupied(mut entry)) => {
            entry.insert(value);
        }
        Ok(Entry::Vacant(entry)) => {
            entry.try_insert(value).map_err(|_| unspeakable())?;
        }
        Err(_) => return Err(unspeakable()),
    }
    Ok(())
}

fn add(out: &mut HeaderMap, name: HeaderName, value: HeaderValue) -> Result<(), Status> {
    out.try_append(name, value).map_err(|_| unspeakable())?;
    Ok(())
}

/// Half an identity is worse than none.
fn unspeakable() -> Status {
    Status::internal(
        "who asks cannot be told to the service in headers: a name is too long or has characters that headers cannot carry",
    )
}

#[cfg(test)]
mod tests;

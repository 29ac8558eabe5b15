//! Headers of proxied requests and answers: removes hop-by-hop and reserved headers, adds the user's identity.

use super::Passing;
use crate::authn::hide_bearer_protocol;
use bareboat_api::Status;
use bareboat_api::kind::User;
use http::header::{self, Entry};
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use std::fmt::Write as _;

/// An additional header for the upstream server.
pub(crate) type Remark = (HeaderName, String);

/// Hop-by-hop headers.
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

/// Returns whether the client asks to upgrade its connection.
pub(super) fn asks_to_upgrade(headers: &HeaderMap) -> bool {
    headers.contains_key(header::UPGRADE)
        && tokens(headers, &header::CONNECTION).any(|token| token.eq_ignore_ascii_case("upgrade"))
}

/// Returns whether an answer switches to the protocol the client asked for.
pub(super) fn same_upgrade<B>(asked: &HeaderMap, answer: &Response<B>) -> bool {
    let wanted: Vec<&str> = tokens(asked, &header::UPGRADE).collect();
    let given: Vec<&str> = tokens(answer.headers(), &header::UPGRADE).collect();
    let was_wanted = |given: &&str| wanted.iter().any(|name| name.eq_ignore_ascii_case(given));
    !given.is_empty() && given.iter().all(was_wanted)
}

/// Returns the headers of a request for the upstream server.
pub(super) fn outward(
    passing: &Passing<'_>,
    upgrade: bool,
    identifies: bool,
) -> Result<HeaderMap, Status> {
    let mut out = HeaderMap::with_capacity(passing.headers.len() + 16);
    let named = named_by_connection(passing.headers);
    for (name, value) in passing.headers {
        if !is_ours(name.as_str()) && !ends_here(name, &named) {
            add(&mut out, name.clone(), value.clone())?;
        }
    }
    // These are set again when the request is sent on.
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
    if identifies {
        identity(passing.user, &mut out)?;
    }
    set(
        &mut out,
        HeaderName::from_static("audit-id"),
        passing.audit_id,
    )?;
    for (name, _) in passing.remarks {
        out.remove(name);
    }
    // A name may have several values.
    for (name, text) in passing.remarks {
        add(&mut out, name.clone(), value(text)?)?;
    }
    Ok(out)
}

/// Returns the headers of an answer for the client.
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

/// Returns whether a header carries an identity, which only this server may set, or credentials, which are not
/// forwarded.
fn is_ours(name: &str) -> bool {
    // Some servers treat an underscore as a dash.
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
        // Credentials for a member of the fleet, which Clusterpedia's clients send. This server uses its own.
        "x-clusterpedia-proxy-",
    ]
    .iter()
    .any(|prefix| name.starts_with(prefix))
}

/// Returns whether a header may only come from the origin the client talks to: cookies, CORS, alternative services.
fn speaks_for_the_origin(name: &str) -> bool {
    matches!(
        name,
        "set-cookie" | "set-cookie2" | "alt-svc" | "clear-site-data"
    ) || name.starts_with("access-control-")
}

/// Returns the headers that `Connection` names.
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

/// Sets the forwarding headers. The client's own values are dropped, except for `X-Forwarded-For`, which is extended.
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

/// Adds the user's identity in the headers of a front proxy.
fn identity(user: &User, out: &mut HeaderMap) -> Result<(), Status> {
    // Receivers remove blanks at the ends, and would see another identity.
    let is_trimmed = |text: &str| text.trim_matches([' ', '\t']) == text;
    let is_exact = is_trimmed(&user.name)
        && is_trimmed(&user.uid)
        && user.groups.iter().all(|group| is_trimmed(group))
        && user.extra.values().flatten().all(|text| is_trimmed(text));
    if !is_exact {
        return Err(unspeakable());
    }
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

/// Escapes a key of the user's extras for the name of a header.
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

/// Returned instead of sending a partial identity.
fn unspeakable() -> Status {
    Status::internal(
        "the user cannot be sent to the upstream server: a name is too long or has characters that are not allowed in headers",
    )
}

#[cfg(test)]
mod tests;

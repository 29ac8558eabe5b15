//! A request on arrival, as policies and events see it.

use crate::authn::bearer;
use crate::diagnostics::Trace;
use crate::request::info::RequestInfo;
use bareboat_api::Value;
use bareboat_api::kind::User;
use bareboat_api::time::Timestamp;
use bareboat_audit::event::{ObjectRef, Request};
use bareboat_audit::policy::{Attributes, Target, Verdict};
use bareboat_tokens::Jws;
use bareboat_tokens::account::{LEGACY_ISSUER, USER_PREFIX};
use http::{HeaderMap, Uri, header};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Maximum number of recorded addresses from headers.
const MOST_ADDRESSES: usize = 32;

/// A request on arrival.
pub(crate) struct Arrival<'a> {
    pub(crate) uri: &'a Uri,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) info: &'a RequestInfo,
    /// The authenticated user; `None` if authentication failed.
    pub(crate) user: Option<&'a Arc<User>>,
    /// The address of the connection.
    pub(crate) from: Option<IpAddr>,
}

impl Arrival<'_> {
    pub(super) fn attributes(&self) -> Attributes<'_> {
        let info = self.info;
        Attributes {
            user: self.user.map(|user| &**user),
            verb: &info.verb,
            target: match info.is_resource {
                true => Target::Resource {
                    group: &info.group,
                    resource: &info.resource,
                    subresource: &info.subresource,
                    namespace: &info.namespace,
                    name: &info.name,
                },
                false => Target::Path(&info.path),
            },
        }
    }

    /// Returns the service account that a token of a Secret authenticated.
    pub(super) fn account_of_secret(&self) -> Option<&str> {
        let name = self.user.map(|user| user.name.as_str());
        name.filter(|name| name.starts_with(USER_PREFIX) && is_of_secret(self.headers))
    }

    pub(super) fn describe(&self, trace: &Trace, verdict: &Verdict) -> Request {
        let info = self.info;
        let agent = self.headers.get(header::USER_AGENT);
        let agent = agent.map(|agent| String::from_utf8_lossy(agent.as_bytes()));
        let target = self.uri.path_and_query();
        Request {
            level: verdict.level,
            omit_managed_fields: verdict.omit_managed_fields,
            audit_id: trace.audit_id().to_owned(),
            uri: target.map_or_else(String::new, |target| target.as_str().to_owned()),
            verb: info.verb.clone(),
            user: self.user.cloned(),
            source_ips: source_ips(self.headers, self.from),
            user_agent: agent.map_or_else(String::new, |agent| agent.into_owned()),
            object: info.is_resource.then(|| ObjectRef {
                group: info.group.clone(),
                version: info.version.clone(),
                resource: info.resource.clone(),
                subresource: info.subresource.clone(),
                namespace: info.namespace.clone(),
                name: info.name.clone(),
            }),
            received: before_now(trace.started().elapsed()),
        }
    }
}

/// Whether the bearer token of a request is one that a Secret holds. It was verified, so its content can be trusted.
fn is_of_secret(headers: &HeaderMap) -> bool {
    let token = bearer(headers).and_then(|token| Jws::parse(token).ok());
    token.is_some_and(|token| {
        let issuer = token.unverified().get("iss").and_then(Value::as_str);
        issuer == Some(LEGACY_ISSUER)
    })
}

/// Returns the source addresses: those in headers, which any client can set, then the address of the connection.
fn source_ips(headers: &HeaderMap, from: Option<IpAddr>) -> Vec<IpAddr> {
    let forwarded = headers.get_all("x-forwarded-for").iter();
    let forwarded = forwarded.filter_map(|value| value.to_str().ok());
    let mut all: Vec<IpAddr> = forwarded
        .flat_map(|list| list.split(','))
        .filter_map(|ip| ip.trim().parse().ok())
        .take(MOST_ADDRESSES)
        .collect();
    let real = headers.get("x-real-ip").and_then(|ip| ip.to_str().ok());
    if let Some(real) = real.and_then(|ip| ip.trim().parse().ok())
        && !all.contains(&real)
    {
        all.push(real);
    }
    if let Some(from) = from
        && all.last() != Some(&from)
    {
        all.push(from);
    }
    all
}

/// Returns the time so long ago.
pub(super) fn before_now(ago: Duration) -> Timestamp {
    let time = SystemTime::now() - ago;
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    let since = since.unwrap_or_default();
    Timestamp {
        seconds: i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
        nanos: since.subsec_nanos(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_secrets_are_told_by_their_issuer() {
        use base64::Engine as _;
        let encode = |text: &str| base64::prelude::BASE64_URL_SAFE_NO_PAD.encode(text);
        let is_known = |claims: &str| {
            let head = encode(r#"{"alg":"ES256"}"#);
            let token = format!("Bearer {head}.{}.{}", encode(claims), encode("signature"));
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, token.parse().expect("a header"));
            is_of_secret(&headers)
        };
        assert!(is_known(r#"{"iss":"kubernetes/serviceaccount"}"#));
        assert!(!is_known(r#"{"iss":"https://kubernetes.default.svc"}"#));
        assert!(!is_of_secret(&HeaderMap::new()));
    }

    #[test]
    fn the_address_of_the_connection_is_the_last() {
        let mut headers = HeaderMap::new();
        let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
        assert_eq!(source_ips(&headers, Some(ip("9.9.9.9"))), [ip("9.9.9.9")]);
        assert!(source_ips(&headers, None).is_empty());
        headers.insert(
            "x-forwarded-for",
            "1.1.1.1, nonsense, ::2".parse().expect("a header"),
        );
        headers.insert("x-real-ip", "3.3.3.3".parse().expect("a header"));
        assert_eq!(
            source_ips(&headers, Some(ip("9.9.9.9"))),
            [ip("1.1.1.1"), ip("::2"), ip("3.3.3.3"), ip("9.9.9.9")]
        );
        let many = "1.2.3.4,".repeat(10_000);
        headers.insert("x-forwarded-for", many.parse().expect("a header"));
        assert!(source_ips(&headers, None).len() < 64);
    }
}

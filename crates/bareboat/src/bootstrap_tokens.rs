//! Bootstrap tokens: short-lived Secrets in `kube-system` that authenticate new nodes.
//!
//! ```
//! use bareboat::bootstrap_tokens::BootstrapTokens;
//! use bareboat::prelude::*;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::builder().control_plane().authenticator(BootstrapTokens).build()?;
//! # drop(server);
//! # Ok(()) }
//! ```

use bareboat_api::admission::Lookup;
use bareboat_api::kind::{BoxFuture, User};
use bareboat_api::time::Timestamp;
use bareboat_api::{Object, Str, Value};
use bareboat_server::authn::{Authenticator, BadCredentials, Evidence, TokenUser, bearer};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use std::time::{SystemTime, UNIX_EPOCH};

/// The group of everyone with such a token; further groups begin with it.
const GROUP: &str = "system:bootstrappers";

/// Users by bootstrap tokens.
#[derive(Clone, Copy, Debug, Default)]
pub struct BootstrapTokens;

/// The id and the secret of a token, if it has the form of one.
fn parts(token: &str) -> Option<(&str, &str)> {
    let (id, secret) = token.split_once('.')?;
    let plain = |text: &str, length: usize| {
        let known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        text.len() == length && text.bytes().all(known)
    };
    (plain(id, 6) && plain(secret, 16)).then_some((id, secret))
}

fn check(token: &str, objects: &dyn Lookup, now: i64) -> Result<Option<User>, BadCredentials> {
    let Some((id, secret)) = parts(token) else {
        return Ok(None);
    };
    let name = format!("bootstrap-token-{id}");
    let bad = |why: &str| BadCredentials(format!("the bootstrap token {id} {why}"));
    let stored = objects
        .get("core/secrets", "kube-system", &name)
        .ok_or_else(|| bad("does not exist"))?;
    if stored.deletion_timestamp().is_some() {
        return Err(bad("is being deleted"));
    }
    if stored.get("type").and_then(Value::as_str) != Some("bootstrap.kubernetes.io/token") {
        return Err(bad("is a secret of another type"));
    }
    let data = |key: &str| data(&stored, key);
    // Digests are compared, so that the time of the comparison reveals nothing about the secret.
    let same = Sha256::digest(data("token-secret")) == Sha256::digest(secret);
    if !same || secret.is_empty() {
        return Err(bad("has another secret"));
    }
    if data("token-id") != id {
        return Err(bad("has another id"));
    }
    if data("usage-bootstrap-authentication") != "true" {
        return Err(bad("is not for authentication"));
    }
    let expiration = data("expiration");
    if !expiration.is_empty() {
        let end = Timestamp::parse(&expiration).map_err(|_| bad("has a malformed expiration"))?;
        if now >= end.seconds {
            return Err(bad("has expired"));
        }
    }
    let mut groups = vec![Str::const_new(GROUP)];
    let listed = data("auth-extra-groups");
    for group in listed.split(',').filter(|group| !group.is_empty()) {
        if !is_group(group) {
            return Err(bad("has a group that such tokens cannot have"));
        }
        groups.push(Str::new(group));
    }
    Ok(Some(User {
        name: Str::new(format!("system:bootstrap:{id}")),
        groups,
        ..User::default()
    }))
}

/// The text under a key of a secret; empty if there is none.
fn data(secret: &Object, key: &str) -> String {
    let encoded = secret.at(&["data", key]).and_then(Value::as_str);
    let bytes = encoded.and_then(|text| STANDARD.decode(text).ok());
    bytes
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .unwrap_or_default()
}

/// Whether a group is one of those that bootstrap tokens may have.
fn is_group(group: &str) -> bool {
    let Some(rest) = group
        .strip_prefix(GROUP)
        .and_then(|rest| rest.strip_prefix(':'))
    else {
        return false;
    };
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    rest.len() <= 256
        && rest
            .bytes()
            .all(|byte| plain(byte) || byte == b':' || byte == b'-')
        && rest.bytes().last().is_some_and(plain)
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| i64::try_from(time.as_secs()).unwrap_or(i64::MAX))
}

impl Authenticator for BootstrapTokens {
    fn authenticate<'a>(
        &'a self,
        evidence: &'a Evidence<'a>,
    ) -> BoxFuture<'a, Result<Option<User>, BadCredentials>> {
        let found = match bearer(evidence.headers) {
            Some(token) => check(token, evidence.objects, now()),
            None => Ok(None),
        };
        Box::pin(std::future::ready(found))
    }

    fn review_token<'a>(
        &'a self,
        token: &'a str,
        _audiences: &'a [Str],
        objects: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<Option<TokenUser>, BadCredentials>> {
        let found = check(token, objects, now()).map(|found| {
            found.map(|user| TokenUser {
                user,
                audiences: None,
            })
        });
        Box::pin(std::future::ready(found))
    }
}

#[cfg(test)]
mod tests;

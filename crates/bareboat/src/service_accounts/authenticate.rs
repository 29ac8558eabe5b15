//! Accepts tokens. The signature of a token is verified once; expiry, account and bound objects are checked with every
//! request.

use super::{ServiceAccounts, Verified, now};
use bareboat_api::admission::Lookup;
use bareboat_api::kind::{BoxFuture, User};
use bareboat_api::time::Timestamp;
use bareboat_api::{Object, Str, Value};
use bareboat_server::Revocations;
use bareboat_server::authn::{Authenticator, BadCredentials, Evidence, TokenUser, bearer};
use bareboat_tokens::account::{Claims, Reference};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// Where service accounts are stored.
const ACCOUNTS: &str = "core/serviceaccounts";
/// How long an object counts as present after its deletion began, in seconds.
const GRACE: i64 = 60;

type Outcome<T> = Result<T, BadCredentials>;

fn bad(why: impl Into<String>) -> BadCredentials {
    BadCredentials(why.into())
}

impl ServiceAccounts {
    /// Returns the user of the token in the head of a request.
    fn check_head(&self, evidence: &Evidence<'_>) -> Outcome<Option<Arc<User>>> {
        let Some(token) = bearer(evidence.headers) else {
            return Ok(None);
        };
        let found = self.check(token, &[], evidence.objects)?;
        Ok(found.map(|found| found.user.clone()))
    }

    /// Returns a token that is valid for one of the audiences; `None` for foreign tokens.
    fn check(
        &self,
        token: &str,
        audiences: &[Str],
        objects: &dyn Lookup,
    ) -> Outcome<Option<Arc<Verified>>> {
        let keys = self.shared.keys.load();
        let issuers = &self.shared.settings.issuers;
        let verified = keys
            .verify(token, issuers, now())
            .map_err(|error| bad(error.to_string()))?;
        let Some(verified) = verified else {
            return Ok(None);
        };
        let claims = &verified.claims;
        self.check_audiences(claims, audiences)?;
        let (namespace, name) = (&*claims.namespace, &*claims.account.name);
        let account = objects.brief(ACCOUNTS, namespace, name);
        let account =
            account.ok_or_else(|| bad(format!("serviceaccounts \"{name}\" not found")))?;
        if account.uid != claims.account.uid {
            return Err(bad(format!(
                "service account UID ({}) does not match claim ({})",
                account.uid, claims.account.uid
            )));
        }
        if account.terminating && is_gone(objects, ACCOUNTS, namespace, name) {
            return Err(bad(format!(
                "service account {namespace}/{name} has been deleted"
            )));
        }
        match claims.legacy {
            true => {
                let secret = check_secret(token, claims, objects)?;
                self.report_use(&secret);
            }
            false => check_bound(claims, objects)?,
        }
        Ok(Some(verified))
    }

    /// Reports the use of a token of a secret, unless the label of the secret names this day.
    fn report_use(&self, secret: &Object) {
        let used = self.shared.used.load();
        let Some(hook) = used.as_deref() else {
            return;
        };
        let seconds = now();
        let today = Timestamp { seconds, nanos: 0 }.print_seconds();
        let noted = secret.label("kubernetes.io/legacy-token-last-used");
        if noted != today.get(..10) {
            hook(secret.namespace(), secret.name());
        }
    }

    /// Returns the audiences of a token, and those of which it must have one.
    fn both_audiences<'a>(
        &'a self,
        claims: &'a Claims,
        wanted: &'a [Str],
    ) -> (&'a [Str], &'a [Str]) {
        let own = &self.shared.audiences;
        let or_own = |list: &'a [Str]| match list.is_empty() {
            true => own.as_slice(),
            false => list,
        };
        // A token without audiences is for the API server.
        (or_own(&claims.audiences), or_own(wanted))
    }

    /// Checks that a token has one of the wanted audiences.
    fn check_audiences(&self, claims: &Claims, wanted: &[Str]) -> Outcome<()> {
        let (held, wanted) = self.both_audiences(claims, wanted);
        // Mostly both begin with the server's own audience.
        let same_first = held.first().is_some_and(|one| wanted.first() == Some(one));
        if same_first || !common(held, wanted).is_empty() {
            return Ok(());
        }
        let list = |audiences: &[Str]| {
            let quoted: Vec<String> = audiences
                .iter()
                .map(|audience| bareboat_api::field::go_quote(audience))
                .collect();
            format!("[{}]", quoted.join(" "))
        };
        Err(bad(format!(
            "token audiences {} is invalid for the target audiences {}",
            list(held),
            list(wanted)
        )))
    }
}

/// Returns the audiences that are both wanted and in a token.
fn common(held: &[Str], wanted: &[Str]) -> Vec<Str> {
    // Clients choose both lists; the set keeps the work linear.
    let known: HashSet<&Str> = held.iter().collect();
    let common = wanted.iter().filter(|audience| known.contains(audience));
    common.cloned().collect()
}

/// Returns whether an object is gone, or its deletion began more than the grace period ago.
fn is_gone(objects: &dyn Lookup, store: &str, namespace: &str, name: &str) -> bool {
    let Some(object) = objects.get(store, namespace, name) else {
        return true;
    };
    object
        .deletion_timestamp()
        .and_then(|text| Timestamp::parse(text).ok())
        .is_some_and(|begun| begun.seconds.saturating_add(GRACE) < now())
}

fn check_bound(claims: &Claims, objects: &dyn Lookup) -> Outcome<()> {
    let invalidated = || bad("service account token has been invalidated");
    let check = |store: &str, namespace: &str, reference: &Reference| {
        let name = &*reference.name;
        let found = objects.brief(store, namespace, name);
        let found = found.filter(|object| object.uid == reference.uid);
        match found {
            Some(object) if !object.terminating => Ok(()),
            Some(_) if !is_gone(objects, store, namespace, name) => Ok(()),
            _ => Err(invalidated()),
        }
    };
    if let Some(secret) = &claims.secret {
        check("core/secrets", &claims.namespace, secret)?;
    }
    match (&claims.pod, &claims.node) {
        (Some(pod), _) => check("core/pods", &claims.namespace, pod),
        // For a token bound to a pod, the node is information only. A token bound to a node needs that node.
        (None, Some(node)) => check("core/nodes", "", node),
        (None, None) => Ok(()),
    }
}

/// Checks a token of a Secret: it is valid only while that Secret contains it.
fn check_secret(token: &str, claims: &Claims, objects: &dyn Lookup) -> Outcome<Object> {
    let invalidated = || bad("token has been invalidated");
    let name = claims.secret.as_ref().map_or("", |secret| &secret.name);
    let secret = objects
        .get("core/secrets", &claims.namespace, name)
        .ok_or_else(invalidated)?;
    let stored = secret.at(&["data", "token"]).and_then(Value::as_str);
    let stored = stored.and_then(|text| STANDARD.decode(text).ok());
    let stored = stored.ok_or_else(invalidated)?;
    // Digests are compared, so that timing reveals nothing about the token.
    let same = Sha256::digest(&stored) == Sha256::digest(token.as_bytes());
    let marked = secret
        .meta("labels")
        .and_then(|labels| labels.get("kubernetes.io/legacy-token-invalid-since"));
    if !same || marked.is_some() || secret.deletion_timestamp().is_some() {
        return Err(invalidated());
    }
    Ok(secret)
}

/// Returns the user that claims describe, in the group of all authenticated users.
pub(super) fn user(claims: &Claims) -> User {
    let mut extra = BTreeMap::new();
    let mut add = |key: &str, value: String| {
        extra.insert(format!("authentication.kubernetes.io/{key}"), vec![value]);
    };
    if !claims.id.is_empty() {
        add("credential-id", format!("JTI={}", claims.id));
    }
    for (kind, reference) in [("pod", &claims.pod), ("node", &claims.node)] {
        if let Some(reference) = reference {
            add(&format!("{kind}-name"), reference.name.to_string());
            add(&format!("{kind}-uid"), reference.uid.to_string());
        }
    }
    User {
        name: Str::new(claims.user_name()),
        uid: claims.account.uid.clone(),
        groups: vec![
            Str::const_new("system:serviceaccounts"),
            Str::new(format!("system:serviceaccounts:{}", claims.namespace)),
            Str::const_new("system:authenticated"),
        ],
        extra,
    }
}

impl Authenticator for ServiceAccounts {
    fn attach(&self, revocations: &Revocations) {
        let _ = self.shared.revocations.set(revocations.clone());
    }

    fn authenticate<'a>(
        &'a self,
        evidence: &'a Evidence<'a>,
    ) -> BoxFuture<'a, Result<Option<User>, BadCredentials>> {
        let found = self.check_head(evidence);
        let found = found.map(|found| found.map(Arc::unwrap_or_clone));
        Box::pin(std::future::ready(found))
    }

    fn authenticate_now(&self, evidence: &Evidence<'_>) -> Option<Outcome<Option<Arc<User>>>> {
        Some(self.check_head(evidence))
    }

    fn review_token<'a>(
        &'a self,
        token: &'a str,
        audiences: &'a [Str],
        objects: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<Option<TokenUser>, BadCredentials>> {
        let found = self.check(token, audiences, objects);
        let found = found.map(|found| {
            found.map(|found| {
                let (held, wanted) = self.both_audiences(&found.claims, audiences);
                TokenUser {
                    user: User::clone(&found.user),
                    audiences: Some(common(held, wanted)),
                }
            })
        });
        Box::pin(std::future::ready(found))
    }
}

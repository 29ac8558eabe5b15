//! Webhook token review: another server authenticates tokens.
//!
//! Successes are cached for a while under a keyed digest of the token; failures are not.

use super::{Authenticator, BadCredentials, Evidence, TokenUser, bearer};
use crate::outbound::RemoteApi;
use crate::revocation::could_not_review;
use ahash::{HashMap, HashMapExt as _};
use bareboat_api::admission::Lookup;
use bareboat_api::kind::{BoxFuture, User};
use bareboat_api::{Str, Value, value};
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Timeout of a TokenReview.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum number of cached answers about tokens.
const REMEMBERED: usize = 4096;
/// How many reviews may run at once, because unauthenticated clients cause them.
const AT_ONCE: usize = 256;
/// The longest token that is sent.
const LONGEST: usize = 16 * 1024;

/// Users by tokens that another server reviews.
pub struct WebhookTokens {
    remote: RemoteApi,
    path: &'static str,
    version: ReviewVersion,
    ttl: Duration,
    /// The audiences that mean this server.
    audiences: Vec<Str>,
    secret: [u8; 16],
    known: Mutex<HashMap<[u8; 32], Known>>,
    places: Semaphore,
}

bareboat_api::opaque_debug!(WebhookTokens);

/// The user of a token, and until when it is cached.
type Known = (Arc<TokenUser>, Instant);

/// The version of the TokenReviews that are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReviewVersion {
    /// `v1`.
    #[default]
    V1,
    /// `v1beta1`, for webhooks that are not newer.
    V1Beta1,
}

impl ReviewVersion {
    fn name(self) -> &'static str {
        match self {
            ReviewVersion::V1 => "v1",
            ReviewVersion::V1Beta1 => "v1beta1",
        }
    }
}

impl std::str::FromStr for ReviewVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<ReviewVersion, String> {
        match text {
            "v1" => Ok(ReviewVersion::V1),
            "v1beta1" => Ok(ReviewVersion::V1Beta1),
            _ => Err(format!("{text} is not a version; there are v1 and v1beta1")),
        }
    }
}

impl WebhookTokens {
    /// Posts reviews to the address of the kubeconfig itself. `audiences` are the names of this server.
    pub fn new(remote: RemoteApi, audiences: &[String]) -> WebhookTokens {
        WebhookTokens {
            remote,
            path: "",
            version: ReviewVersion::V1,
            ttl: Duration::from_secs(120),
            audiences: audiences.iter().map(Str::new).collect(),
            secret: crate::random::bytes(),
            known: Mutex::new(HashMap::new()),
            places: Semaphore::new(AT_ONCE),
        }
    }

    /// Posts reviews to another API server, which the kubeconfig is for. Its tokens are also valid here; accepted ones
    /// are cached for ten seconds.
    pub fn of_server(remote: RemoteApi) -> WebhookTokens {
        WebhookTokens {
            path: "/apis/authentication.k8s.io/v1/tokenreviews",
            ttl: Duration::from_secs(10),
            ..WebhookTokens::new(remote, &[])
        }
    }

    /// Caches accepted tokens this long; the default is two minutes.
    #[must_use]
    pub fn cache_ttl(mut self, ttl: Duration) -> WebhookTokens {
        self.ttl = ttl;
        self
    }

    /// Sends reviews in this version.
    #[must_use]
    pub fn version(mut self, version: ReviewVersion) -> WebhookTokens {
        self.version = version;
        self
    }

    async fn check(
        &self,
        token: &str,
        audiences: &[Str],
    ) -> Result<Option<Arc<TokenUser>>, BadCredentials> {
        if token.len() > LONGEST {
            return Ok(None);
        }
        let digest = self.digest(token, audiences);
        if let Some((user, until)) = self.known.lock().get(&digest)
            && Instant::now() < *until
        {
            return Ok(Some(user.clone()));
        }
        let Ok(_place) = self.places.try_acquire() else {
            could_not_review();
            let why = "too many token reviews are under way";
            return Err(BadCredentials(why.to_owned()));
        };
        let answer = self.ask(token, audiences).await?;
        let Some(user) = read(&answer, audiences)? else {
            return Ok(None);
        };
        let user = Arc::new(user);
        if !self.ttl.is_zero() {
            let mut known = self.known.lock();
            if known.len() >= REMEMBERED {
                known.clear();
            }
            known.insert(digest, (user.clone(), Instant::now() + self.ttl));
        }
        Ok(Some(user))
    }

    fn digest(&self, token: &str, audiences: &[Str]) -> [u8; 32] {
        let mut digest = Sha256::new_with_prefix(self.secret);
        for text in audiences.iter().map(Str::as_str).chain([token]) {
            digest.update((text.len() as u64).to_le_bytes());
            digest.update(text);
        }
        digest.finalize().into()
    }

    async fn ask(&self, token: &str, audiences: &[Str]) -> Result<Value, BadCredentials> {
        let mut review = value!({
            "apiVersion": (format!("authentication.k8s.io/{}", self.version.name())),
            "kind": "TokenReview",
            "spec": {"token": (token)},
        });
        if !audiences.is_empty() {
            let list: Value = audiences.iter().cloned().collect();
            let spec = review.make_object().object_mut("spec");
            spec.insert("audiences", list);
        }
        let answer = self.remote.post(self.path, &review, PATIENCE).await;
        answer.map_err(|error| {
            could_not_review();
            tracing::warn!(%error, "a token could not be reviewed by the webhook");
            BadCredentials("the webhook could not review the token".to_owned())
        })
    }
}

/// Returns the user of an answer. It must have one of the requested audiences, unless the webhook does not support
/// audiences.
fn read(answer: &Value, wanted: &[Str]) -> Result<Option<TokenUser>, BadCredentials> {
    let status = answer.get("status").unwrap_or(&Value::Null);
    if status.get("authenticated") != Some(&Value::Bool(true)) {
        return match status.get("error").and_then(Value::as_str) {
            Some(why) if !why.is_empty() => Err(BadCredentials(why.chars().take(512).collect())),
            _ => Ok(None),
        };
    }
    let texts = |value: Option<&Value>| -> Vec<Str> {
        let list = value.and_then(Value::as_array).unwrap_or(&[]);
        list.iter()
            .filter_map(Value::as_str)
            .map(Str::new)
            .collect()
    };
    let user = status.get("user").unwrap_or(&Value::Null);
    let text = |key: &str| Str::new(user.get(key).and_then(Value::as_str).unwrap_or(""));
    let name = text("username");
    if name.is_empty() {
        let why = "the webhook accepted a token and named no user";
        return Err(BadCredentials(why.to_owned()));
    }
    let held = texts(status.get("audiences"));
    let common: Vec<Str> = match held.is_empty() {
        // The webhook does not support audiences, so its tokens are for this server.
        true => wanted.to_vec(),
        false => wanted
            .iter()
            .filter(|it| held.contains(it))
            .cloned()
            .collect(),
    };
    if common.is_empty() && !wanted.is_empty() {
        return Ok(None);
    }
    let extra = user.get("extra").and_then(Value::as_object);
    let extra = extra.into_iter().flat_map(|extra| extra.iter());
    Ok(Some(TokenUser {
        user: User {
            name,
            uid: text("uid"),
            groups: texts(user.get("groups")),
            extra: extra
                .map(|(key, values)| {
                    let values = texts(Some(values)).iter().map(Str::to_string).collect();
                    (key.to_owned(), values)
                })
                .collect(),
        },
        audiences: Some(common),
    }))
}

impl Authenticator for WebhookTokens {
    fn authenticate<'a>(
        &'a self,
        evidence: &'a Evidence<'a>,
    ) -> BoxFuture<'a, Result<Option<User>, BadCredentials>> {
        Box::pin(async move {
            let Some(token) = bearer(evidence.headers) else {
                return Ok(None);
            };
            let found = self.check(token, &self.audiences).await?;
            Ok(found.map(|found| found.user.clone()))
        })
    }

    fn review_token<'a>(
        &'a self,
        token: &'a str,
        audiences: &'a [Str],
        _objects: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<Option<TokenUser>, BadCredentials>> {
        let audiences = match audiences.is_empty() {
            true => self.audiences.as_slice(),
            false => audiences,
        };
        Box::pin(async move {
            let found = self.check(token, audiences).await?;
            Ok(found.map(|found| TokenUser::clone(&found)))
        })
    }
}

#[cfg(test)]
mod tests;

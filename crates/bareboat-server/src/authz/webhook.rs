//! Webhook authorizer: another server decides, by SubjectAccessReviews.
//!
//! Answers are cached for a while under a digest of the whole review.

use super::{Attributes, Authorizer, Decision, review};
use crate::outbound::RemoteApi;
use crate::revocation::could_not_review;
use ahash::HashMap;
use bareboat_api::kind::BoxFuture;
use bareboat_api::{Value, value};
use bareboat_auth::authorization::{FailurePolicy, MatchConditions, Matched, WebhookConfiguration};
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Answers to longer reviews are not cached.
const LONGEST_KEY: usize = 10_000;
/// How many answers are cached.
const REMEMBERED: usize = 8192;
/// How many reviews may run at once.
const AT_ONCE: usize = 512;

/// An authorizer that calls another server.
pub struct WebhookAuthorizer {
    name: String,
    remote: RemoteApi,
    path: &'static str,
    timeout: Duration,
    authorized_ttl: Option<Duration>,
    unauthorized_ttl: Option<Duration>,
    failure_policy: FailurePolicy,
    conditions: MatchConditions,
    known: Mutex<HashMap<[u8; 32], (Decision, Instant)>>,
    places: Semaphore,
}

bareboat_api::opaque_debug!(WebhookAuthorizer);

impl WebhookAuthorizer {
    /// Posts reviews to the address of the kubeconfig itself, as configured.
    pub fn configured(
        name: &str,
        remote: RemoteApi,
        configuration: WebhookConfiguration,
    ) -> WebhookAuthorizer {
        WebhookAuthorizer {
            name: name.to_owned(),
            remote,
            path: "",
            timeout: configuration.timeout,
            authorized_ttl: configuration.authorized_ttl,
            unauthorized_ttl: configuration.unauthorized_ttl,
            failure_policy: configuration.failure_policy,
            conditions: configuration.conditions,
            known: Mutex::default(),
            places: Semaphore::new(AT_ONCE),
        }
    }

    /// Posts reviews to another API server, which the kubeconfig is for. If it cannot be reached, nothing is allowed.
    /// Answers are cached for ten seconds.
    pub fn of_server(remote: RemoteApi) -> WebhookAuthorizer {
        let ttl = Some(Duration::from_secs(10));
        WebhookAuthorizer {
            name: "delegated".to_owned(),
            remote,
            path: "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            timeout: Duration::from_secs(10),
            authorized_ttl: ttl,
            unauthorized_ttl: ttl,
            failure_policy: FailurePolicy::NoOpinion,
            conditions: MatchConditions::default(),
            known: Mutex::default(),
            places: Semaphore::new(AT_ONCE),
        }
    }

    async fn ask(&self, attributes: Attributes<'_>) -> Decision {
        let spec = review::spec(attributes);
        match self.conditions.check(&spec) {
            Matched::Yes => {}
            Matched::No => return Decision::NoOpinion(String::new()),
            Matched::Failed(why) => return self.failed(&why),
        }
        let spec = review::sent(spec);
        let question = spec.to_json();
        let key: Option<[u8; 32]> =
            (question.len() <= LONGEST_KEY).then(|| Sha256::digest(&question).into());
        if let Some(key) = &key
            && let Some((decision, until)) = self.known.lock().get(key)
            && Instant::now() < *until
        {
            return decision.clone();
        }
        let Ok(_place) = self.places.try_acquire() else {
            return self.failed("too many questions are under way");
        };
        let review = value!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": (spec),
        });
        let answer = self.remote.post(self.path, &review, self.timeout).await;
        let decision = match answer {
            Ok(answer) => read(&answer),
            Err(error) => return self.failed(&error.to_string()),
        };
        let ttl = match decision {
            Decision::Allow(_) => self.authorized_ttl,
            _ => self.unauthorized_ttl,
        };
        if let (Some(key), Some(ttl)) = (key, ttl) {
            let mut known = self.known.lock();
            if known.len() >= REMEMBERED {
                known.clear();
            }
            known.insert(key, (decision.clone(), Instant::now() + ttl));
        }
        decision
    }

    fn failed(&self, why: &str) -> Decision {
        could_not_review();
        tracing::warn!(authorizer = %self.name, %why, "a webhook could not decide about a request");
        match self.failure_policy {
            FailurePolicy::NoOpinion => Decision::NoOpinion(String::new()),
            // The error is only logged: it may name servers that clients should not know.
            FailurePolicy::Deny => {
                Decision::Deny(format!("the authorizer {} could not decide", self.name))
            }
        }
    }
}

fn read(answer: &Value) -> Decision {
    let is = |key: &str| answer.at(&["status", key]) == Some(&Value::Bool(true));
    let reason = answer.at(&["status", "reason"]).and_then(Value::as_str);
    let reason: String = reason.unwrap_or("").chars().take(1024).collect();
    match (is("allowed"), is("denied")) {
        // An answer that both allows and denies allows nothing.
        (_, true) => Decision::Deny(reason),
        (true, false) => Decision::Allow(reason),
        (false, false) => Decision::NoOpinion(reason),
    }
}

impl Authorizer for WebhookAuthorizer {
    fn authorize<'a>(&'a self, attributes: Attributes<'a>) -> BoxFuture<'a, Decision> {
        Box::pin(self.ask(attributes))
    }
}

#[cfg(test)]
mod tests;

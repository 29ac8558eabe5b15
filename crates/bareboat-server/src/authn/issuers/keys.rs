//! The keys of one issuer: fetched at the start, every hour, and when a token names an unknown key.
//!
//! Unauthenticated clients send tokens, so an unknown key must not make this server call the issuer without limit:
//! concurrent fetches are shared, and their number is limited. While the issuer is down, its last keys stay valid.

use crate::outbound::HttpsClient;
use arc_swap::ArcSwapOption;
use bareboat_api::Value;
use bareboat_auth::JwtIssuer;
use bareboat_tokens::{Jws, KeySet, TokenError};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// How long one document may take to fetch.
const PATIENCE: Duration = Duration::from_secs(10);
/// Interval of fetches, and of retries after a failure.
const EVERY: (Duration, Duration) = (Duration::from_secs(3600), Duration::from_secs(10));
/// How many fetches tokens may cause at once, and how long until one more is allowed.
const BURST: (u32, Duration) = (3, Duration::from_secs(10));
/// How many requests may wait for a fetch.
const WAITING: usize = 64;

/// The keys of one issuer.
pub(super) struct IssuerKeys {
    client: HttpsClient,
    url: String,
    document_url: String,
    authorities: String,
    known: ArcSwapOption<KeySet>,
    /// Changes with the keys.
    generation: AtomicU64,
    /// Counts fetches, whether or not they succeed.
    attempts: AtomicU64,
    fetching: tokio::sync::Mutex<()>,
    waiting: Semaphore,
    allowance: Mutex<Allowance>,
}

/// How many fetches tokens may cause now.
struct Allowance {
    left: u32,
    since: Instant,
}

impl Allowance {
    fn take(&mut self, now: Instant) -> bool {
        while self.left < BURST.0 && now.duration_since(self.since) >= BURST.1 {
            self.left += 1;
            self.since += BURST.1;
        }
        if self.left == BURST.0 {
            self.since = now;
        }
        let allowed = self.left > 0;
        self.left = self.left.saturating_sub(1);
        allowed
    }
}

impl IssuerKeys {
    /// Fetches keys and keeps them up to date until they are dropped.
    pub(super) fn follow(issuer: &JwtIssuer, client: &HttpsClient) -> Arc<IssuerKeys> {
        let keys = Arc::new(IssuerKeys {
            client: client.clone(),
            url: issuer.url().to_owned(),
            document_url: issuer.document_url(),
            authorities: issuer.certificate_authority().to_owned(),
            known: ArcSwapOption::empty(),
            generation: AtomicU64::new(0),
            attempts: AtomicU64::new(0),
            fetching: tokio::sync::Mutex::new(()),
            waiting: Semaphore::new(WAITING),
            allowance: Mutex::new(Allowance {
                left: BURST.0,
                since: Instant::now(),
            }),
        });
        // Without a runtime the first token fetches them.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(refresh(Arc::downgrade(&keys)));
        }
        keys
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Verifies the signature of a token; returns the generation of the keys that verified it.
    pub(super) async fn verify(&self, token: &Jws<'_>) -> Result<u64, String> {
        let attempts = self.attempts.load(Ordering::Acquire);
        match self.try_verify(token) {
            Some(Err(TokenError::NoKeys)) | None => {}
            // A token without a key ID may be signed by a new key.
            Some(Err(TokenError::Signature)) if token.key_id().is_none() => {}
            Some(Err(error)) => return Err(error.to_string()),
            Some(Ok(generation)) => return Ok(generation),
        }
        self.fetch_for_token(attempts).await?;
        match self.try_verify(token) {
            Some(outcome) => outcome.map_err(|error| error.to_string()),
            None => Err("its keys are not known yet".to_owned()),
        }
    }

    /// Verifies with the known keys; `None` if there are none.
    fn try_verify(&self, token: &Jws<'_>) -> Option<Result<u64, TokenError>> {
        let generation = self.generation();
        let keys = self.known.load();
        let keys = keys.as_ref()?;
        Some(keys.verify(token).map(|()| generation))
    }

    /// Fetches the keys because of a token, unless another request did so in the meantime.
    async fn fetch_for_token(&self, attempts: u64) -> Result<(), String> {
        let Ok(_place) = self.waiting.try_acquire() else {
            return Err("too many requests wait for its keys".to_owned());
        };
        let _alone = self.fetching.lock().await;
        if self.attempts.load(Ordering::Acquire) != attempts {
            return Ok(());
        }
        if !self.allowance.lock().take(Instant::now()) {
            return Err("the key is unknown, and keys were fetched a moment ago".to_owned());
        }
        self.fetch().await
    }

    /// Fetches the keys and takes them.
    async fn fetch(&self) -> Result<(), String> {
        let fetched = self.download().await;
        self.attempts.fetch_add(1, Ordering::AcqRel);
        match fetched {
            Ok(keys) => {
                if self.known.load().as_deref() != Some(&keys) {
                    self.known.store(Some(Arc::new(keys)));
                    self.generation.fetch_add(1, Ordering::AcqRel);
                }
                Ok(())
            }
            Err(why) => {
                tracing::warn!(issuer = %self.url, %why, "the keys of an issuer cannot be fetched");
                Err("its keys cannot be fetched".to_owned())
            }
        }
    }

    async fn download(&self) -> Result<KeySet, String> {
        let get = |url: String| async move {
            let fetched = self.client.get(&url, &self.authorities, PATIENCE).await;
            fetched.map_err(|error| error.to_string())
        };
        let document = get(self.document_url.clone()).await?;
        let document = bareboat_wire::json::parse(&document)
            .map_err(|_| "the discovery document is not JSON".to_owned())?;
        let text = |key: &str| document.value.get(key).and_then(Value::as_str);
        if text("issuer") != Some(self.url.as_str()) {
            return Err("the discovery document is of another issuer".to_owned());
        }
        let location = text("jwks_uri").ok_or("the discovery document names no key set")?;
        let keys = get(location.to_owned()).await?;
        KeySet::parse(&keys).map_err(|error| format!("the key set cannot be used: {error}"))
    }
}

/// Keeps keys up to date until they are dropped.
async fn refresh(keys: Weak<IssuerKeys>) {
    loop {
        let Some(held) = keys.upgrade() else {
            return;
        };
        let fetched = {
            let _alone = held.fetching.lock().await;
            held.fetch().await
        };
        drop(held);
        let pause = match fetched {
            Ok(()) => EVERY.0,
            Err(_) => EVERY.1,
        };
        tokio::time::sleep(pause).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_cause_few_fetches() {
        let begin = Instant::now();
        let mut allowance = Allowance {
            left: BURST.0,
            since: begin,
        };
        let taken = (0..1000).filter(|_| allowance.take(begin)).count();
        assert_eq!(taken, 3);
        let later = begin + BURST.1;
        assert_eq!((0..1000).filter(|_| allowance.take(later)).count(), 1);
        let much_later = later + BURST.1 * 100;
        let taken = (0..1000).filter(|_| allowance.take(much_later)).count();
        assert_eq!(taken, 3, "the allowance does not grow without end");
    }
}

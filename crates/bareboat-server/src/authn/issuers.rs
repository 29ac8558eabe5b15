//! Tokens of JWT issuers (OIDC): finds the issuer of a token, verifies its signature, and returns its user.
//!
//! `bareboat-auth` interprets claims; `keys` fetches keys. The user of a token is cached under a keyed digest of the
//! token until the token expires, or the keys or the configuration change; expiry is checked each time.

mod keys;

use super::{Authenticator, BadCredentials, Evidence, TokenUser, bearer};
use crate::outbound::HttpsClient;
use crate::revocation::Revocations;
use ahash::HashMap;
use arc_swap::ArcSwap;
use bareboat_api::admission::Lookup;
use bareboat_api::kind::{BoxFuture, User};
use bareboat_api::{Str, Value};
use bareboat_auth::JwtIssuer;
use bareboat_tokens::{Jws, MAX_TOKEN};
use keys::IssuerKeys;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

/// Maximum number of cached tokens.
const REMEMBERED: usize = 4096;

/// Authenticates users by JWTs of configured issuers. The issuers can be replaced while the server runs.
#[derive(Clone)]
pub struct JwtIssuers {
    client: HttpsClient,
    /// The audiences that mean this server.
    audiences: Arc<[Str]>,
    current: Arc<ArcSwap<Issuers>>,
    revocations: Arc<OnceLock<Revocations>>,
}

bareboat_api::opaque_debug!(JwtIssuers);

/// The issuers of one configuration.
#[derive(Default)]
struct Issuers {
    all: Vec<Known>,
    /// Keys the digests below, so that they reveal nothing about the tokens.
    secret: [u8; 16],
    accepted: Mutex<HashMap<[u8; 32], Accepted>>,
}

struct Known {
    issuer: JwtIssuer,
    keys: Arc<IssuerKeys>,
}

#[derive(Clone)]
struct Accepted {
    user: Arc<User>,
    expires: i64,
    /// The index of the issuer, and the generation of its keys when the token was checked.
    issuer: usize,
    generation: u64,
}

impl JwtIssuers {
    /// No issuers yet. `audiences` are the names of this server in the audiences of TokenReviews.
    pub fn new(audiences: &[String]) -> JwtIssuers {
        JwtIssuers {
            client: HttpsClient::new(),
            audiences: audiences.iter().map(Str::new).collect(),
            current: Arc::default(),
            revocations: Arc::default(),
        }
    }

    /// Accepts tokens of these issuers from now on, and of no others. Keys of issuers that were known before are kept.
    pub fn replace(&self, issuers: Vec<JwtIssuer>) {
        let before = self.current.load();
        let all = issuers.into_iter().map(|issuer| {
            let known = before
                .all
                .iter()
                .find(|known| known.issuer.has_same_keys(&issuer));
            let keys = match known {
                Some(known) => known.keys.clone(),
                None => IssuerKeys::follow(&issuer, &self.client),
            };
            Known { issuer, keys }
        });
        self.current.store(Arc::new(Issuers {
            all: all.collect(),
            secret: crate::random::bytes(),
            accepted: Mutex::default(),
        }));
        if let Some(revocations) = self.revocations.get() {
            revocations.everything_changed();
        }
    }

    /// Returns the number of issuers.
    pub fn len(&self) -> usize {
        self.current.load().all.len()
    }

    /// Returns whether there are no issuers.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the user of a token; `None` if no configured issuer issued it.
    async fn check(&self, token: &str) -> Result<Option<User>, BadCredentials> {
        let issuers = self.current.load_full();
        if issuers.all.is_empty() || token.len() > MAX_TOKEN {
            return Ok(None);
        }
        let digest: [u8; 32] = Sha256::new_with_prefix(issuers.secret)
            .chain_update(token)
            .finalize()
            .into();
        let now = now();
        if let Some(user) = issuers.remembered(&digest, now)? {
            return Ok(Some(user));
        }
        let Ok(jws) = Jws::parse(token) else {
            return Ok(None);
        };
        let named = jws.unverified().get("iss").and_then(Value::as_str);
        let place = issuers
            .all
            .iter()
            .position(|known| Some(known.issuer.url()) == named);
        let Some(place) = place else {
            return Ok(None);
        };
        let known = &issuers.all[place];
        let fail = |why: String| BadCredentials(format!("{}: {why}", known.issuer.url()));
        let generation = known.keys.verify(&jws).await.map_err(fail)?;
        let found = known.issuer.identify(jws.unverified(), now).map_err(fail)?;
        issuers.remember(
            digest,
            Accepted {
                user: Arc::new(found.user.clone()),
                expires: found.expires,
                issuer: place,
                generation,
            },
        );
        Ok(Some(found.user))
    }
}

impl Issuers {
    fn remembered(&self, digest: &[u8; 32], now: i64) -> Result<Option<User>, BadCredentials> {
        let found = self.accepted.lock().get(digest).cloned();
        let Some(found) = found else {
            return Ok(None);
        };
        if self.all[found.issuer].keys.generation() != found.generation {
            return Ok(None);
        }
        match now > found.expires {
            true => Err(BadCredentials("the token is expired".to_owned())),
            false => Ok(Some(User::clone(&found.user))),
        }
    }

    fn remember(&self, digest: [u8; 32], accepted: Accepted) {
        let mut all = self.accepted.lock();
        // Only tokens that an issuer signed get here; when there are too many, the cache is cleared.
        if all.len() >= REMEMBERED {
            all.clear();
        }
        all.insert(digest, accepted);
    }
}

/// Seconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| i64::try_from(time.as_secs()).unwrap_or(i64::MAX))
}

impl Authenticator for JwtIssuers {
    fn attach(&self, revocations: &Revocations) {
        let _ = self.revocations.set(revocations.clone());
    }

    fn authenticate<'a>(
        &'a self,
        evidence: &'a Evidence<'a>,
    ) -> BoxFuture<'a, Result<Option<User>, BadCredentials>> {
        Box::pin(async move {
            match bearer(evidence.headers) {
                Some(token) => self.check(token).await,
                None => Ok(None),
            }
        })
    }

    fn review_token<'a>(
        &'a self,
        token: &'a str,
        audiences: &'a [Str],
        _objects: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<Option<TokenUser>, BadCredentials>> {
        Box::pin(async move {
            // The issuer's configuration has checked the audience; the token is for this server.
            let common = super::common_audiences(&self.audiences, audiences);
            let Some(common) = common else {
                return Ok(None);
            };
            let user = self.check(token).await?;
            Ok(user.map(|user| TokenUser {
                user,
                audiences: Some(common),
            }))
        })
    }
}

//! Service account tokens: issues and accepts them.
//!
//! ```
//! use bareboat::prelude::*;
//! use bareboat::service_accounts::{ServiceAccounts, TokenSettings};
//!
//! # fn start(key_pem: &str) -> Result<(), Box<dyn std::error::Error>> {
//! let accounts = ServiceAccounts::new(key_pem, &[], TokenSettings::default())?;
//! let server = accounts.install(Server::builder().control_plane()).build()?;
//! # Ok(()) }
//! ```

mod authenticate;
mod issue;
mod revoke;
#[cfg(feature = "controllers")]
mod secrets;

use arc_swap::{ArcSwap, ArcSwapOption};
use bareboat_api::kind::{Subresource, User};
use bareboat_api::{Str, Value, value};
use bareboat_server::{Page, Revocations, ServerBuilder};
use bareboat_tokens::account::{self, Claims};
use bareboat_tokens::{KeyError, MAX_TOKEN, PublicKey, SigningKey, TokenError};
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use issue::TokenAction;

/// The default issuer of tokens.
pub const DEFAULT_ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// Settings for tokens.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TokenSettings {
    /// Token issuers. New tokens name the first one; tokens of all of them are accepted.
    pub issuers: Vec<String>,
    /// The audiences of this API server; empty means the issuers.
    pub audiences: Vec<String>,
    /// The maximum lifetime of a token; longer requests are shortened with a warning.
    pub longest: Duration,
    /// The URL of the key set; derived from the issuer if absent.
    pub key_set_url: Option<String>,
}

impl Default for TokenSettings {
    fn default() -> TokenSettings {
        TokenSettings {
            issuers: vec![DEFAULT_ISSUER.to_owned()],
            audiences: Vec::new(),
            longest: Duration::from_secs(365 * 24 * 3600),
            key_set_url: None,
        }
    }
}

/// Maximum number of cached token signatures.
const REMEMBERED: usize = 4096;

/// The key that signs tokens and the keys that verify them.
struct Keys {
    signing: SigningKey,
    /// The public part of the signing key, then older keys.
    checking: Vec<PublicKey>,
    /// The key of the token digests, so that digests reveal nothing about tokens.
    secret: [u8; 16],
    /// Verified tokens by their digest. Verifying a signature costs more than most requests.
    verified: Mutex<HashMap<[u8; 32], Arc<Verified>>>,
}

/// A token with a valid signature. Whether it is still valid is another question.
struct Verified {
    claims: Claims,
    /// The user that the claims describe, in the group of all authenticated users.
    user: Arc<User>,
}

impl Keys {
    fn read(signing: &str, others: &[String]) -> Result<Keys, KeyError> {
        let signing = SigningKey::from_pem(signing)?;
        let mut checking = vec![signing.public().clone()];
        for text in others {
            for key in PublicKey::from_pem(text)? {
                if !checking.contains(&key) {
                    checking.push(key);
                }
            }
        }
        Ok(Keys {
            signing,
            checking,
            secret: uuid::Uuid::new_v4().into_bytes(),
            verified: Mutex::new(HashMap::new()),
        })
    }

    /// Returns a token that one of the keys signed and that has not expired; `None` for foreign tokens.
    fn verify(
        &self,
        token: &str,
        issuers: &[String],
        now: i64,
    ) -> Result<Option<Arc<Verified>>, TokenError> {
        if token.len() > MAX_TOKEN {
            return Ok(None);
        }
        let digest: [u8; 32] = Sha256::new_with_prefix(self.secret)
            .chain_update(token)
            .finalize()
            .into();
        if let Some(known) = self.verified.lock().get(&digest).cloned() {
            known.claims.check_end(now)?;
            return Ok(Some(known));
        }
        let Some(claims) = account::read(token, issuers, &self.checking, now)? else {
            return Ok(None);
        };
        let user = Arc::new(authenticate::user(&claims));
        let known = Arc::new(Verified { claims, user });
        let mut verified = self.verified.lock();
        // Only tokens issued by this server are cached; a full cache is cleared.
        if verified.len() >= REMEMBERED {
            verified.clear();
        }
        verified.insert(digest, known.clone());
        Ok(Some(known))
    }
}

/// Called with the namespace and the name of a secret whose token was used.
type UseHook = Box<dyn Fn(&str, &str) + Send + Sync>;

struct Shared {
    settings: TokenSettings,
    audiences: Vec<Str>,
    keys: ArcSwap<Keys>,
    revocations: OnceLock<Revocations>,
    /// Told when a token of a secret is used on a day that its secret does not name yet.
    used: ArcSwapOption<UseHook>,
}

/// Issues and accepts service account tokens.
#[derive(Clone)]
pub struct ServiceAccounts {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for ServiceAccounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServiceAccounts")
            .field("settings", &self.shared.settings)
            .finish_non_exhaustive()
    }
}

impl ServiceAccounts {
    /// Returns the id of the key that signs tokens, and the ids of all keys that verify them.
    pub fn key_ids(&self) -> (String, Vec<String>) {
        let keys = self.shared.keys.load();
        let verifying = keys.checking.iter().map(|key| key.id().to_owned());
        (keys.signing.public().id().to_owned(), verifying.collect())
    }

    /// Creates an issuer that signs with a private key (PEM) and accepts tokens signed with it or one of the other keys
    /// (PEM, public or private).
    pub fn new(
        signing: &str,
        others: &[String],
        settings: TokenSettings,
    ) -> Result<ServiceAccounts, KeyError> {
        let audiences = match settings.audiences.is_empty() {
            true => &settings.issuers,
            false => &settings.audiences,
        };
        Ok(ServiceAccounts {
            shared: Arc::new(Shared {
                audiences: audiences.iter().map(Str::new).collect(),
                keys: ArcSwap::from_pointee(Keys::read(signing, others)?),
                revocations: OnceLock::new(),
                used: ArcSwapOption::empty(),
                settings,
            }),
        })
    }

    /// Replaces the keys.
    pub fn replace_keys(&self, signing: &str, others: &[String]) -> Result<(), KeyError> {
        self.shared
            .keys
            .store(Arc::new(Keys::read(signing, others)?));
        if let Some(revocations) = self.shared.revocations.get() {
            revocations.everything_changed();
        }
        Ok(())
    }

    /// Makes a server issue and accept tokens and publish the public keys. Call it after `control_plane`: it adds the
    /// subresource `token` to the existing kind ServiceAccount.
    #[must_use]
    pub fn install(&self, builder: ServerBuilder) -> ServerBuilder {
        let (document, keys) = (self.clone(), self.clone());
        let token = Subresource::action(
            "token",
            ("authentication.k8s.io", "v1", "TokenRequest"),
            TokenAction::new(self.clone()),
        );
        revoke::observe(builder)
            .authenticator(self.clone())
            .subresource("", "serviceaccounts", &token)
            .page(
                "/.well-known/openid-configuration",
                Page::new("application/json", move || document.discovery().to_json()),
            )
            .page(
                "/openid/v1/jwks",
                Page::new("application/jwk-set+json", move || keys.key_set().to_json()),
            )
    }

    /// The issuers whose tokens are accepted; no other authenticator may have them.
    pub fn issuers(&self) -> &[String] {
        &self.shared.settings.issuers
    }

    /// The audiences that mean this server.
    pub fn audiences(&self) -> Vec<String> {
        self.shared.audiences.iter().map(Str::to_string).collect()
    }

    fn issuer(&self) -> &str {
        let first = self.shared.settings.issuers.first();
        first.map_or(DEFAULT_ISSUER, String::as_str)
    }

    /// Returns the OpenID discovery document, which refers to the key set.
    fn discovery(&self) -> Value {
        let issuer = self.issuer();
        let keys = match &self.shared.settings.key_set_url {
            Some(url) => url.clone(),
            None => format!("{}/openid/v1/jwks", issuer.trim_end_matches('/')),
        };
        let mut algorithms: Vec<&str> = Vec::new();
        for key in &self.shared.keys.load().checking {
            let name = key.algorithm().name();
            if !algorithms.contains(&name) {
                algorithms.push(name);
            }
        }
        value!({
            "issuer": (issuer),
            "jwks_uri": (keys),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": (algorithms.into_iter().collect::<Value>()),
        })
    }

    fn key_set(&self) -> Value {
        let keys = self.shared.keys.load();
        let keys: Vec<Value> = keys.checking.iter().map(PublicKey::to_value).collect();
        value!({"keys": (Value::Array(keys))})
    }
}

/// Returns the current time in seconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| i64::try_from(time.as_secs()).unwrap_or(i64::MAX))
}

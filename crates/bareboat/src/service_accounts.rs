//! Service accounts for a server: tokens that it issues and accepts.
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

use arc_swap::ArcSwap;
use bareboat_api::kind::Subresource;
use bareboat_api::{Str, Value, value};
use bareboat_server::{Page, ServerBuilder};
use bareboat_tokens::account::{self, Claims};
use bareboat_tokens::{KeyError, MAX_TOKEN, PublicKey, SigningKey, TokenError};
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use issue::TokenAction;

/// The issuer of tokens unless another is named.
pub const DEFAULT_ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// What can be chosen about tokens.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TokenSettings {
    /// Who issues tokens. The first is named in new tokens, tokens of all are accepted.
    pub issuers: Vec<String>,
    /// The audiences that mean this API server; the issuers if empty.
    pub audiences: Vec<String>,
    /// The longest life of a token; longer ones are shortened with a warning.
    pub longest: Duration,
    /// Where clients find the key set; derived from the issuer if absent.
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

/// How many tokens are remembered as well signed.
const REMEMBERED: usize = 4096;

/// Keys: one signs, several check.
struct Keys {
    signing: SigningKey,
    /// The public half of the signing key first, then older ones.
    checking: Vec<PublicKey>,
    /// Keys the digests below, so that they tell nothing of the tokens.
    secret: [u8; 16],
    /// What well signed tokens claim, by a digest of the token. Checking a signature costs more than most requests.
    verified: Mutex<HashMap<[u8; 32], Arc<Claims>>>,
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

    /// What a token claims, if one of the keys signed it and its time has come and not passed. Nothing if it is not ours.
    fn claims(
        &self,
        token: &str,
        issuers: &[String],
        now: i64,
    ) -> Result<Option<Arc<Claims>>, TokenError> {
        if token.len() > MAX_TOKEN {
            return Ok(None);
        }
        let digest: [u8; 32] = Sha256::new_with_prefix(self.secret)
            .chain_update(token)
            .finalize()
            .into();
        if let Some(known) = self.verified.lock().get(&digest).cloned() {
            known.check_end(now)?;
            return Ok(Some(known));
        }
        let Some(claims) = account::read(token, issuers, &self.checking, now)? else {
            return Ok(None);
        };
        let claims = Arc::new(claims);
        let mut verified = self.verified.lock();
        // Only tokens this server issued get here; when there are too many, the count starts again.
        if verified.len() >= REMEMBERED {
            verified.clear();
        }
        verified.insert(digest, claims.clone());
        Ok(Some(claims))
    }
}

struct Shared {
    settings: TokenSettings,
    audiences: Vec<Str>,
    keys: ArcSwap<Keys>,
}

/// Issues tokens of service accounts and accepts them.
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
    /// Signs with a private key (PEM), and accepts what it or one of the other keys (PEM, public or private) signed.
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
                settings,
            }),
        })
    }

    /// Uses other keys from now on.
    pub fn replace_keys(&self, signing: &str, others: &[String]) -> Result<(), KeyError> {
        self.shared
            .keys
            .store(Arc::new(Keys::read(signing, others)?));
        Ok(())
    }

    /// Lets a server issue and accept tokens, and publish the keys they are checked with. Call it after
    /// `control_plane`: it serves the subresource `token` of the service accounts that are there.
    #[must_use]
    pub fn install(&self, builder: ServerBuilder) -> ServerBuilder {
        let (document, keys) = (self.clone(), self.clone());
        let token = Subresource::action(
            "token",
            ("authentication.k8s.io", "v1", "TokenRequest"),
            TokenAction::new(self.clone()),
        );
        builder
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

    fn issuer(&self) -> &str {
        let first = self.shared.settings.issuers.first();
        first.map_or(DEFAULT_ISSUER, String::as_str)
    }

    /// The document by which others find the key set.
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

/// Seconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| i64::try_from(time.as_secs()).unwrap_or(i64::MAX))
}

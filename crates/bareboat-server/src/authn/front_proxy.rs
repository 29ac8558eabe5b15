//! Front proxies: servers that authenticate users themselves and name them in headers.
//!
//! The headers count only on connections with a certificate of the front proxies' own CA and an allowed common name.

use super::certificate::common_name;
use super::{Authenticator, BadCredentials, CredentialHeaders, Evidence, Peer};
use crate::request::query::percent_decode;
use crate::revocation::Revocations;
use crate::tls::{TlsError, client_verifier, shared_key};
use arc_swap::ArcSwap;
use bareboat_api::Str;
use bareboat_api::kind::{BoxFuture, User};
use http::HeaderMap;
use parking_lot::Mutex;
use rustls::pki_types::UnixTime;
use rustls::server::danger::ClientCertVerifier;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// How many certificates of front proxies are remembered as verified.
const REMEMBERED: usize = 64;

/// Which front proxies are trusted, and which headers they use.
#[derive(Clone, Debug)]
pub struct FrontProxySettings {
    /// The CA of front proxies (PEM).
    pub ca: String,
    /// Common names that certificates of front proxies may have; at least one.
    pub allowed_names: Vec<String>,
    /// Headers with the user name; the first that is there counts.
    pub username_headers: Vec<String>,
    /// Headers with the uid; the first that is there counts.
    pub uid_headers: Vec<String>,
    /// Headers with groups; all of them count.
    pub group_headers: Vec<String>,
    /// How headers with extra information begin.
    pub extra_prefixes: Vec<String>,
}

impl FrontProxySettings {
    /// The headers that Kubernetes uses.
    pub fn new(ca: impl Into<String>, allowed_names: Vec<String>) -> FrontProxySettings {
        FrontProxySettings {
            ca: ca.into(),
            allowed_names,
            username_headers: vec!["X-Remote-User".to_owned()],
            uid_headers: vec!["X-Remote-Uid".to_owned()],
            group_headers: vec!["X-Remote-Group".to_owned()],
            extra_prefixes: vec!["X-Remote-Extra-".to_owned()],
        }
    }
}

/// Why front proxies cannot be trusted as configured.
#[derive(Debug)]
#[non_exhaustive]
pub enum FrontProxyError {
    /// No common name is allowed.
    NoNames,
    /// No header names the user.
    NoHeader,
    /// The CA also signs certificates of users.
    SameCa,
    /// The CA cannot be used.
    Ca(TlsError),
}

impl fmt::Display for FrontProxyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FrontProxyError::NoNames => {
                "front proxies need allowed names: without them every certificate of the CA could name any user"
            }
            FrontProxyError::NoHeader => "front proxies need a header with the user name",
            FrontProxyError::SameCa => {
                "the CA of front proxies also signs client certificates: every user could name any other; use \
                 two CAs"
            }
            FrontProxyError::Ca(_) => "the CA of front proxies cannot be used",
        })
    }
}

impl std::error::Error for FrontProxyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            FrontProxyError::Ca(error) => Some(error),
            _ => None,
        }
    }
}

/// Users that front proxies name.
#[derive(Clone)]
pub struct FrontProxy {
    /// What cannot change while the server runs: the headers.
    settings: Arc<FrontProxySettings>,
    names: Arc<ArcSwap<Vec<String>>>,
    trust: Arc<ArcSwap<Trust>>,
    generation: Arc<AtomicU64>,
    revocations: Arc<OnceLock<Revocations>>,
}

bareboat_api::opaque_debug!(FrontProxy);

struct Trust {
    verifier: Arc<dyn ClientCertVerifier>,
    /// Chains that were verified, by digest, with the common name. Their expiry is checked by the connection.
    verified: Mutex<HashMap<[u8; 32], Option<String>>>,
}

impl Trust {
    fn new(ca: &str) -> Result<Trust, FrontProxyError> {
        Ok(Trust {
            verifier: client_verifier(ca).map_err(FrontProxyError::Ca)?,
            verified: Mutex::default(),
        })
    }

    /// The common name of a peer whose certificate is of this CA.
    fn name(&self, peer: &Peer) -> Option<String> {
        let (own, chain) = peer.certificates.split_first()?;
        peer.lifetime()?;
        let mut digest = Sha256::new();
        for certificate in &peer.certificates {
            digest.update((certificate.len() as u64).to_le_bytes());
            digest.update(certificate);
        }
        let digest: [u8; 32] = digest.finalize().into();
        if let Some(known) = self.verified.lock().get(&digest) {
            return known.clone();
        }
        let trusted = self
            .verifier
            .verify_client_cert(own, chain, UnixTime::now())
            .is_ok();
        let name = match trusted {
            true => Some(common_name(own).ok().flatten().unwrap_or_default()),
            false => None,
        };
        let mut verified = self.verified.lock();
        if verified.len() >= REMEMBERED {
            verified.clear();
        }
        verified.insert(digest, name.clone());
        name
    }
}

impl FrontProxy {
    /// Trusts front proxies. `client_ca` is the CA of client certificates, which must be another one.
    pub fn new(
        settings: FrontProxySettings,
        client_ca: Option<&str>,
    ) -> Result<FrontProxy, FrontProxyError> {
        check_names(&settings.allowed_names)?;
        if settings.username_headers.is_empty() {
            return Err(FrontProxyError::NoHeader);
        }
        check_authorities(&settings.ca, client_ca)?;
        Ok(FrontProxy {
            trust: Arc::new(ArcSwap::from_pointee(Trust::new(&settings.ca)?)),
            names: Arc::new(ArcSwap::from_pointee(settings.allowed_names.clone())),
            settings: Arc::new(settings),
            generation: Arc::default(),
            revocations: Arc::default(),
        })
    }

    /// Trusts front proxies of another CA from the next request on.
    pub fn replace_ca(&self, ca: &str, client_ca: Option<&str>) -> Result<(), FrontProxyError> {
        check_authorities(ca, client_ca)?;
        self.trust.store(Arc::new(Trust::new(ca)?));
        self.changed();
        Ok(())
    }

    /// Trusts front proxies with other common names from the next request on.
    pub fn replace_names(&self, allowed: Vec<String>) -> Result<(), FrontProxyError> {
        check_names(&allowed)?;
        self.names.store(Arc::new(allowed));
        self.changed();
        Ok(())
    }

    fn changed(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
        if let Some(revocations) = self.revocations.get() {
            revocations.everything_changed();
        }
    }

    fn check(&self, evidence: &Evidence<'_>) -> Result<Option<User>, BadCredentials> {
        match self.trust.load().name(evidence.peer) {
            None => Ok(None),
            Some(name) if self.names.load().contains(&name) => self.user(evidence.headers),
            Some(name) => Err(BadCredentials(format!(
                "a certificate of the front proxies' CA has the name {name:?}, which is not allowed"
            ))),
        }
    }

    fn user(&self, headers: &HeaderMap) -> Result<Option<User>, BadCredentials> {
        let settings = &self.settings;
        let Some(name) = single(headers, &settings.username_headers)? else {
            return Ok(None);
        };
        let uid = single(headers, &settings.uid_headers)?;
        let mut groups = Vec::new();
        for header in &settings.group_headers {
            for value in headers.get_all(header.as_str()) {
                groups.extend(text(value)?.filter(|text| !text.is_empty()).map(Str::new));
            }
        }
        let mut user = User {
            name: Str::new(name),
            uid: Str::new(uid.unwrap_or("")),
            groups,
            ..User::default()
        };
        for prefix in &settings.extra_prefixes {
            let prefix = prefix.to_ascii_lowercase();
            for (header, value) in headers {
                let Some(key) = header.as_str().strip_prefix(&prefix) else {
                    continue;
                };
                let key =
                    percent_decode(key).map_or_else(|| key.to_owned(), |key| key.into_owned());
                let values = user.extra.entry(key.to_lowercase()).or_default();
                values.extend(text(value)?.map(str::to_owned));
            }
        }
        Ok(Some(user))
    }
}

fn check_names(allowed: &[String]) -> Result<(), FrontProxyError> {
    match allowed.iter().all(String::is_empty) {
        true => Err(FrontProxyError::NoNames),
        false => Ok(()),
    }
}

fn check_authorities(ca: &str, client_ca: Option<&str>) -> Result<(), FrontProxyError> {
    match client_ca.is_some_and(|other| shared_key(ca, other)) {
        true => Err(FrontProxyError::SameCa),
        false => Ok(()),
    }
}

fn text(value: &http::HeaderValue) -> Result<Option<&str>, BadCredentials> {
    let text = std::str::from_utf8(value.as_bytes());
    text.map(Some)
        .map_err(|_| BadCredentials("a header of a front proxy is not UTF-8".to_owned()))
}

/// Returns the value of the first header that is not empty. A repeated header is an error: a user may have added it.
fn single<'h>(headers: &'h HeaderMap, names: &[String]) -> Result<Option<&'h str>, BadCredentials> {
    for name in names {
        let mut values = headers.get_all(name.as_str()).iter();
        let Some(value) = values.next() else {
            continue;
        };
        if values.next().is_some() {
            let why = format!("a front proxy sent the header {name} twice");
            return Err(BadCredentials(why));
        }
        if let Some(value) = text(value)?.filter(|value| !value.is_empty()) {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

impl Authenticator for FrontProxy {
    fn authenticate<'a>(
        &'a self,
        evidence: &'a Evidence<'a>,
    ) -> BoxFuture<'a, Result<Option<User>, BadCredentials>> {
        Box::pin(std::future::ready(self.check(evidence)))
    }

    fn authenticate_now(
        &self,
        evidence: &Evidence<'_>,
    ) -> Option<Result<Option<Arc<User>>, BadCredentials>> {
        Some(self.check(evidence).map(|found| found.map(Arc::new)))
    }

    fn speaks_for_others(&self, peer: &Peer) -> bool {
        !peer.certificates.is_empty() && self.trust.load().name(peer).is_some()
    }

    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    fn attach(&self, revocations: &Revocations) {
        let _ = self.revocations.set(revocations.clone());
    }

    fn credential_headers(&self) -> CredentialHeaders {
        let settings = &self.settings;
        let names = [
            &settings.username_headers,
            &settings.uid_headers,
            &settings.group_headers,
        ];
        CredentialHeaders::new(names.into_iter().flatten(), &settings.extra_prefixes)
    }
}

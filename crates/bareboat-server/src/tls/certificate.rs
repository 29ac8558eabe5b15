//! Certificates with their keys, which can be replaced while the server runs.

use arc_swap::ArcSwap;
use bareboat_certificates::Certificate;
use rustls::Error;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::sync::Arc;

/// An error in certificates.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The PEM data does not contain what is needed.
    #[error("no {0} was found in the PEM data")]
    Missing(&'static str),
    /// A certificate or key is invalid, or they do not match.
    #[error("certificate and key cannot be used")]
    Unusable(#[source] Error),
    /// The CA for client certificates is invalid.
    #[error("the CA for client certificates cannot be used: {0}")]
    ClientCa(String),
}

/// The cryptography all connections use.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Parses a chain and its key in PEM.
pub(super) fn certified_key(chain: &str, key: &str) -> Result<CertifiedKey, TlsError> {
    let chain = certificates(chain)?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
        .map_err(|_| TlsError::Missing("private key"))?;
    CertifiedKey::from_der(chain, key, &provider()).map_err(TlsError::Unusable)
}

/// Parses the certificates in a PEM text; there must be at least one.
pub(super) fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Vec<_> = CertificateDer::pem_slice_iter(pem.as_bytes())
        .filter_map(Result::ok)
        .collect();
    if found.is_empty() {
        Err(TlsError::Missing("certificate"))
    } else {
        Ok(found)
    }
}

/// A certificate that can be replaced while the server runs.
#[derive(Debug)]
pub(super) struct Exchangeable(ArcSwap<CertifiedKey>);

impl Exchangeable {
    pub(super) fn new(certified: CertifiedKey) -> Exchangeable {
        Exchangeable(ArcSwap::from_pointee(certified))
    }

    #[cfg(feature = "outbound")]
    pub(super) fn current(&self) -> Arc<CertifiedKey> {
        self.0.load_full()
    }

    pub(super) fn replace(&self, certified: CertifiedKey) {
        self.0.store(Arc::new(certified));
    }

    /// When it expires, in seconds since 1970.
    pub(super) fn expires(&self) -> Option<i64> {
        let certified = self.0.load();
        Certificate::parse(certified.cert.first()?).map(|parsed| parsed.not_after)
    }
}

impl ResolvesServerCert for Exchangeable {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

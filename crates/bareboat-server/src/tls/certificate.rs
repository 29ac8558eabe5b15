//! The server's own certificates, serving and client, which can be replaced while the server runs.

use arc_swap::ArcSwap;
use rustls::client::ResolvesClientCert;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{Error, SignatureScheme};
use std::fmt;
use std::hash::{Hash, Hasher};
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

    pub(super) fn replace(&self, certified: CertifiedKey) {
        self.0.store(Arc::new(certified));
    }

    /// When it expires, in seconds since 1970.
    pub(super) fn expires(&self) -> Option<i64> {
        let certified = self.0.load();
        let (_, parsed) = x509_parser::parse_x509_certificate(certified.cert.first()?).ok()?;
        Some(parsed.validity().not_after.timestamp())
    }
}

impl ResolvesServerCert for Exchangeable {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

/// The client certificate presented to upstream servers, which lets them trust the user headers. Two are equal if they
/// are the same one.
#[derive(Clone)]
pub struct ClientIdentity(pub(super) Arc<Source>);

pub(super) enum Source {
    Given(Exchangeable),
    /// Called for chain and key in PEM for each connection.
    Asked(Box<dyn Fn() -> Option<(String, String)> + Send + Sync>),
}

impl ClientIdentity {
    /// A certificate chain and its key in PEM.
    pub fn from_pem(chain: &str, key: &str) -> Result<ClientIdentity, TlsError> {
        let given = Source::Given(Exchangeable::new(certified_key(chain, key)?));
        Ok(ClientIdentity(Arc::new(given)))
    }

    /// Looks up chain and key for each connection.
    pub(crate) fn looked_up(
        find: impl Fn() -> Option<(String, String)> + Send + Sync + 'static,
    ) -> ClientIdentity {
        ClientIdentity(Arc::new(Source::Asked(Box::new(find))))
    }

    /// Presents another certificate on new connections.
    pub fn replace(&self, chain: &str, key: &str) -> Result<(), TlsError> {
        let certified = certified_key(chain, key)?;
        if let Source::Given(given) = &*self.0 {
            given.replace(certified);
        }
        Ok(())
    }
}

impl PartialEq for ClientIdentity {
    fn eq(&self, other: &ClientIdentity) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ClientIdentity {}

impl Hash for ClientIdentity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

impl fmt::Debug for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientIdentity")
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Source")
    }
}

impl ResolvesClientCert for Source {
    fn resolve(&self, _issuers: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        match self {
            Source::Given(given) => Some(given.0.load_full()),
            Source::Asked(find) => {
                let (chain, key) = find()?;
                match certified_key(&chain, &key) {
                    Ok(certified) => Some(Arc::new(certified)),
                    Err(error) => {
                        tracing::warn!(%error, "a client certificate cannot be used");
                        None
                    }
                }
            }
        }
    }

    fn has_certs(&self) -> bool {
        true
    }
}

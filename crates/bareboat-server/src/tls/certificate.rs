//! Certificates of our own, shown to clients or to servers, and exchanged while connections come and go.

use arc_swap::ArcSwap;
use rustls::client::ResolvesClientCert;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{Error, SignatureScheme};
use std::fmt;
use std::sync::Arc;

/// Why certificates cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum TlsError {
    /// A PEM file holds nothing of the sort that is needed.
    Missing(&'static str),
    /// A certificate or key is broken or they do not belong together.
    Unusable(Error),
    /// The CA for client certificates cannot be used.
    ClientCa(String),
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsError::Missing(what) => write!(f, "no {what} was found in the PEM data"),
            TlsError::Unusable(_) => f.write_str("certificate and key cannot be used"),
            TlsError::ClientCa(why) => {
                write!(f, "the CA for client certificates cannot be used: {why}")
            }
        }
    }
}

impl std::error::Error for TlsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            TlsError::Unusable(error) => Some(error),
            _ => None,
        }
    }
}

/// The cryptography all connections use.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// A chain and its key in PEM.
pub(super) fn certified_key(chain: &str, key: &str) -> Result<CertifiedKey, TlsError> {
    let chain = certificates(chain)?;
    let key = rustls_pemfile::private_key(&mut key.as_bytes())
        .ok()
        .flatten();
    let key: PrivateKeyDer<'static> = key.ok_or(TlsError::Missing("private key"))?;
    CertifiedKey::from_der(chain, key, &provider()).map_err(TlsError::Unusable)
}

/// The certificates in a text, of which there must be some.
pub(super) fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Vec<_> = rustls_pemfile::certs(&mut pem.as_bytes())
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
}

impl ResolvesServerCert for Exchangeable {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

/// The certificate a server shows to those it calls on behalf of others, which is why they may believe whom it names.
#[derive(Clone)]
pub struct ClientIdentity(pub(super) Arc<Source>);

pub(super) enum Source {
    Given(Exchangeable),
    /// Asked for chain and key in PEM whenever a connection is made.
    Asked(Box<dyn Fn() -> Option<(String, String)> + Send + Sync>),
}

impl ClientIdentity {
    /// A certificate chain and its key in PEM.
    pub fn from_pem(chain: &str, key: &str) -> Result<ClientIdentity, TlsError> {
        let given = Source::Given(Exchangeable::new(certified_key(chain, key)?));
        Ok(ClientIdentity(Arc::new(given)))
    }

    /// Whatever chain and key somebody finds at the moment a connection is made.
    pub(crate) fn looked_up(
        find: impl Fn() -> Option<(String, String)> + Send + Sync + 'static,
    ) -> ClientIdentity {
        ClientIdentity(Arc::new(Source::Asked(Box::new(find))))
    }

    /// Shows another certificate on new connections.
    pub fn replace(&self, chain: &str, key: &str) -> Result<(), TlsError> {
        let certified = certified_key(chain, key)?;
        if let Source::Given(given) = &*self.0 {
            given.replace(certified);
        }
        Ok(())
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

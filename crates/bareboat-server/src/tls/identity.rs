//! The client certificate that this server presents to others.

use super::certificate::{Exchangeable, TlsError, certified_key};
use rustls::SignatureScheme;
use rustls::client::ResolvesClientCert;
use rustls::sign::CertifiedKey;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

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
            Source::Given(given) => Some(given.current()),
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

//! The TLS side of a server: its certificate, and client certificates that are asked for but judged by authentication.

use super::certificate::{Exchangeable, TlsError, certificates, certified_key, provider};
use crate::authn::ClientCertificates;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DistinguishedName, Error, RootCertStore, ServerConfig};
use std::sync::Arc;

/// The TLS side of a server.
#[derive(Clone)]
pub struct Tls {
    pub(crate) config: Arc<ServerConfig>,
    certificate: Arc<Exchangeable>,
    client_ca: Option<Arc<dyn ClientCertVerifier>>,
}

impl Tls {
    /// Serves with a certificate chain and key in PEM, and asks clients for certificates of a CA.
    pub fn from_pem(chain: &str, key: &str, client_ca: Option<&str>) -> Result<Tls, TlsError> {
        let certificate = Arc::new(Exchangeable::new(certified_key(chain, key)?));
        let client_ca = client_ca.map(client_verifier).transpose()?;
        let builder = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Unusable)?;
        let mut config = match &client_ca {
            Some(inner) => builder.with_client_cert_verifier(Arc::new(Deferring {
                inner: inner.clone(),
            })),
            None => builder.with_no_client_auth(),
        }
        .with_cert_resolver(certificate.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        // Clients here live long; remembering sessions for each would cost more than it saves.
        config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Tls {
            config: Arc::new(config),
            certificate,
            client_ca,
        })
    }

    /// Serves new connections with another certificate.
    pub fn replace_certificate(&self, chain: &str, key: &str) -> Result<(), TlsError> {
        self.certificate.replace(certified_key(chain, key)?);
        Ok(())
    }

    /// Users by client certificates of the CA, if there is one.
    pub fn client_certificates(&self) -> Option<ClientCertificates> {
        self.client_ca.clone().map(ClientCertificates::new)
    }
}

fn client_verifier(pem: &str) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem)? {
        roots
            .add(certificate)
            .map_err(|error| TlsError::ClientCa(error.to_string()))?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider())
        .allow_unauthenticated()
        .build()
        .map_err(|error| TlsError::ClientCa(error.to_string()))
}

/// Lets any client certificate through the handshake, as long as its holder has the key: whether
/// it is good for anything is decided by authentication, which can answer 401 where a broken
/// handshake would tell nobody anything.
#[derive(Debug)]
struct Deferring {
    inner: Arc<dyn ClientCertVerifier>,
}

impl ClientCertVerifier for Deferring {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.inner.root_hint_subjects()
    }
    fn client_auth_mandatory(&self) -> bool {
        false
    }
    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }
    signatures_checked_by!(inner);
}

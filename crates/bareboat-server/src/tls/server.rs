//! TLS for inbound connections: the serving certificate, and client certificates, which `authn` verifies.

use super::certificate::{Exchangeable, TlsError, certificates, certified_key, provider};
use crate::authn::ClientCertificates;
use crate::server::http2::PROTOCOLS;
use arc_swap::ArcSwap;
use bareboat_certificates::Certificate;
use parking_lot::Mutex;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DistinguishedName, Error, RootCertStore, ServerConfig};
use std::sync::Arc;

/// The TLS configuration of a server.
#[derive(Clone)]
pub struct Tls(Arc<Shared>);

bareboat_api::opaque_debug!(Tls);

struct Shared {
    /// For new connections.
    config: ArcSwap<ServerConfig>,
    certificate: Arc<Exchangeable>,
    clients: Option<ClientCertificates>,
    authorities: Mutex<Authorities>,
}

/// CAs of the client certificates to request (PEM).
#[derive(Clone, Default)]
struct Authorities {
    clients: Option<String>,
    front_proxies: Option<String>,
    peers: Option<String>,
}

impl Authorities {
    /// Returns the configuration of connections. Clients get the names of all CAs; authentication decides which CA
    /// signed a certificate.
    fn config(&self, certificate: &Arc<Exchangeable>) -> Result<ServerConfig, TlsError> {
        let all: Vec<&str> = [&self.clients, &self.front_proxies, &self.peers]
            .into_iter()
            .filter_map(Option::as_deref)
            .collect();
        let builder = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Unusable)?;
        let mut config = match all.is_empty() {
            true => builder.with_no_client_auth(),
            false => builder.with_client_cert_verifier(Arc::new(Deferring {
                inner: client_verifier(&all.join("\n"))?,
            })),
        }
        .with_cert_resolver(certificate.clone());
        config.alpn_protocols = PROTOCOLS.iter().map(|name| name.to_vec()).collect();
        // Clients have long connections; storing sessions for each would cost more than it saves.
        config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(config)
    }
}

impl Tls {
    /// Serves with a certificate chain and key in PEM, and requests client certificates of a CA.
    pub fn from_pem(chain: &str, key: &str, client_ca: Option<&str>) -> Result<Tls, TlsError> {
        let certificate = Arc::new(Exchangeable::new(certified_key(chain, key)?));
        let authorities = Authorities {
            clients: client_ca.map(str::to_owned),
            ..Authorities::default()
        };
        let config = authorities.config(&certificate)?;
        let verifier = client_ca.map(client_verifier).transpose()?;
        Ok(Tls(Arc::new(Shared {
            config: ArcSwap::from_pointee(config),
            certificate,
            clients: verifier.map(ClientCertificates::new),
            authorities: Mutex::new(authorities),
        })))
    }

    /// Serves new connections with another certificate.
    pub fn replace_certificate(&self, chain: &str, key: &str) -> Result<(), TlsError> {
        self.0.certificate.replace(certified_key(chain, key)?);
        Ok(())
    }

    /// Trusts only client certificates of another CA (PEM) from the next request on, also on open connections. Nothing
    /// changes if it is invalid, or if there was no CA from the start.
    pub fn replace_client_ca(&self, ca: &str) -> Result<(), TlsError> {
        let Some(clients) = &self.0.clients else {
            return Err(TlsError::ClientCa("there was none at the start".to_owned()));
        };
        let verifier = client_verifier(ca)?;
        self.change(|authorities| authorities.clients = Some(ca.to_owned()))?;
        clients.replace(verifier);
        Ok(())
    }

    /// Also requests certificates of the front proxies' CA (PEM).
    pub fn ask_front_proxies(&self, ca: &str) -> Result<(), TlsError> {
        self.change(|authorities| authorities.front_proxies = Some(ca.to_owned()))
    }

    /// Also requests certificates of the CA (PEM) of other servers of the same store, which forward requests.
    pub fn ask_peers(&self, ca: &str) -> Result<(), TlsError> {
        self.change(|authorities| authorities.peers = Some(ca.to_owned()))
    }

    fn change(&self, change: impl FnOnce(&mut Authorities)) -> Result<(), TlsError> {
        let mut current = self.0.authorities.lock();
        let mut next = current.clone();
        change(&mut next);
        let config = next.config(&self.0.certificate)?;
        self.0.config.store(Arc::new(config));
        *current = next;
        Ok(())
    }

    /// Returns the authenticator by client certificates of the CA, if there is one.
    pub fn client_certificates(&self) -> Option<ClientCertificates> {
        self.0.clients.clone()
    }

    /// Returns when the serving certificate expires, in seconds since 1970.
    pub(crate) fn expires(&self) -> Option<i64> {
        self.0.certificate.expires()
    }

    /// Returns the configuration of new connections.
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        self.0.config.load_full()
    }
}

/// Returns a verifier of client certificates of a CA.
pub(crate) fn client_verifier(pem: &str) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
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

/// Returns whether two bundles (PEM) have certificates with the same key.
pub(crate) fn shared_key(one: &str, other: &str) -> bool {
    let keys = |pem: &str| -> Vec<Vec<u8>> {
        let found = certificates(pem).unwrap_or_default();
        let keys = found.iter().filter_map(|certificate| {
            Certificate::parse(certificate).map(|parsed| parsed.public_key_info.to_vec())
        });
        keys.collect()
    };
    let known = keys(other);
    keys(one).iter().any(|key| known.contains(key))
}

/// Accepts any client certificate in the handshake, if the client has its key. Authentication verifies the certificate
/// and can answer 401, whereas a failed handshake would not explain the reason.
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

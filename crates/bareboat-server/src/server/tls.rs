//! TLS: our certificate, and client certificates that are asked for but judged by authentication.
//!
//! The only room that knows rustls' configuration.

use crate::authn::ClientCertificates;
use arc_swap::ArcSwap;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{
    DigitallySignedStruct, DistinguishedName, Error, RootCertStore, ServerConfig, SignatureScheme,
};
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
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let certified = certified_key(chain, key, &provider)?;
        let certificate = Arc::new(Exchangeable(ArcSwap::from_pointee(certified)));
        let client_ca = match client_ca {
            None => None,
            Some(pem) => Some(client_verifier(pem, provider.clone())?),
        };
        let builder = ServerConfig::builder_with_provider(provider.clone())
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
        let certified = certified_key(chain, key, self.config.crypto_provider())?;
        self.certificate.0.store(Arc::new(certified));
        Ok(())
    }

    /// Users by client certificates of the CA, if there is one.
    pub fn client_certificates(&self) -> Option<ClientCertificates> {
        self.client_ca.clone().map(ClientCertificates::new)
    }
}

fn certified_key(
    chain: &str,
    key: &str,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, TlsError> {
    let chain = certificates(chain)?;
    let key = rustls_pemfile::private_key(&mut key.as_bytes())
        .ok()
        .flatten();
    let key: PrivateKeyDer<'static> = key.ok_or(TlsError::Missing("private key"))?;
    CertifiedKey::from_der(chain, key, provider).map_err(TlsError::Unusable)
}

fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Vec<_> = rustls_pemfile::certs(&mut pem.as_bytes())
        .filter_map(Result::ok)
        .collect();
    if found.is_empty() {
        Err(TlsError::Missing("certificate"))
    } else {
        Ok(found)
    }
}

fn client_verifier(
    pem: &str,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem)? {
        roots
            .add(certificate)
            .map_err(|error| TlsError::ClientCa(error.to_string()))?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .allow_unauthenticated()
        .build()
        .map_err(|error| TlsError::ClientCa(error.to_string()))
}

/// A certificate that can be replaced while the server runs.
#[derive(Debug)]
struct Exchangeable(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for Exchangeable {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
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
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, cert, signature)
    }
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, cert, signature)
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

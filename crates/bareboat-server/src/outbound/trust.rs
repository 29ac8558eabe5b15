//! Whose certificates are trusted: those of a bundle, or the roots of the system.
//!
//! The only room here that knows how rustls verifies.

use super::error::OutboundError;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper_rustls::ConfigBuilderExt as _;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;

/// Tells bundles apart.
pub(super) type Fingerprint = [u8; 32];

/// Whose certificates are trusted.
#[derive(Clone, Debug)]
pub(super) struct Trust {
    /// PEM; nothing for the roots of the system.
    bundle: Option<Arc<[u8]>>,
    fingerprint: Fingerprint,
}

impl Trust {
    /// A bundle in base64, or the roots of the system if it is empty.
    pub(super) fn of_base64(bundle: &str) -> Result<Trust, OutboundError> {
        let pem = BASE64_STANDARD
            .decode(bundle.trim())
            .map_err(|error| OutboundError::Trust(error.to_string()))?;
        if pem.trim_ascii().is_empty() {
            return Ok(Trust {
                bundle: None,
                fingerprint: Fingerprint::default(),
            });
        }
        Ok(Trust {
            fingerprint: Sha256::digest(&pem).into(),
            bundle: Some(pem.into()),
        })
    }

    pub(super) fn bundle(&self) -> Option<&[u8]> {
        self.bundle.as_deref()
    }

    pub(super) fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }
}

/// TLS that trusts the roots of the system.
pub(super) fn of_system() -> Result<ClientConfig, OutboundError> {
    let roots = builder(provider())?
        .with_native_roots()
        .map_err(|error| OutboundError::Trust(format!("the system has no roots: {error}")))?;
    Ok(roots.with_no_client_auth())
}

/// TLS that trusts a bundle in PEM.
pub(super) fn of_bundle(pem: &[u8]) -> Result<ClientConfig, OutboundError> {
    let provider = provider();
    let mut roots = RootCertStore::empty();
    let mut known = Vec::new();
    for certificate in rustls_pemfile::certs(&mut &*pem) {
        let certificate = certificate.map_err(|error| OutboundError::Trust(error.to_string()))?;
        // One odd certificate among many does not spoil the rest.
        if roots.add(certificate.clone()).is_ok() {
            known.push(certificate);
        }
    }
    if known.is_empty() {
        return Err(OutboundError::Trust("it holds no certificate".to_owned()));
    }
    let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|error| OutboundError::Trust(error.to_string()))?;
    let verifier = Arc::new(Bundle { inner, known });
    Ok(builder(provider)?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth())
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn builder(
    provider: Arc<CryptoProvider>,
) -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, OutboundError> {
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| OutboundError::Trust(error.to_string()))
}

/// Verifies against a bundle; a certificate that is itself in the bundle needs no issuer.
///
/// Webhooks often serve with the very self-signed certificate their bundle consists of, made by tools that mark every
/// self-signed certificate as an authority. Go's clients accept that; webpki alone would not.
#[derive(Debug)]
struct Bundle {
    inner: Arc<WebPkiServerVerifier>,
    known: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Bundle {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if !self.known.contains(end_entity) {
            return self.inner.verify_server_cert(
                end_entity,
                intermediates,
                server_name,
                ocsp_response,
                now,
            );
        }
        check_time(end_entity, now)?;
        verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
        Ok(ServerCertVerified::assertion())
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

fn check_time(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate)
        .map_err(|_| CertificateError::BadEncoding)?;
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let validity = parsed.validity();
    if now < validity.not_before.timestamp() {
        return Err(CertificateError::NotValidYet.into());
    }
    if now > validity.not_after.timestamp() {
        return Err(CertificateError::Expired.into());
    }
    Ok(())
}

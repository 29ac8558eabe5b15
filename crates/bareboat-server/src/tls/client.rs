//! TLS for outbound connections: trusted certificates, and the client certificate.

use super::certificate::provider;
use super::identity::ClientIdentity;
use bareboat_certificates::Certificate;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper_rustls::ConfigBuilderExt as _;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;

/// The SHA-256 digest of a CA bundle; zeros for the system's roots.
pub(crate) type Fingerprint = [u8; 32];

/// The CA certificates that a TLS client trusts.
#[derive(Clone, Debug)]
pub(crate) struct Trust {
    roots: Roots,
    fingerprint: Fingerprint,
}

#[derive(Clone, Debug)]
enum Roots {
    /// The system's.
    System,
    /// PEM.
    Bundle(Arc<[u8]>),
    /// Any certificate is accepted.
    Unverified,
}

impl Trust {
    /// Decodes a CA bundle, which is PEM in base64; an empty one means the system's roots. Whether the PEM is valid is
    /// checked in `client_config`.
    pub(crate) fn of_base64(bundle: &str) -> Result<Trust, String> {
        let pem = BASE64_STANDARD
            .decode(bundle.trim())
            .map_err(|error| error.to_string())?;
        if pem.trim_ascii().is_empty() {
            return Ok(Trust {
                roots: Roots::System,
                fingerprint: Fingerprint::default(),
            });
        }
        Ok(Trust {
            fingerprint: Sha256::digest(&pem).into(),
            roots: Roots::Bundle(pem.into()),
        })
    }

    /// Accepts any certificate. Only for a server whose configuration asks for it (`insecureSkipTLSVerify`).
    pub(crate) fn unverified() -> Trust {
        Trust {
            roots: Roots::Unverified,
            fingerprint: [0xff; 32],
        }
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }
}

/// Returns the TLS configuration with these trusted certificates, with or without a client certificate.
pub(crate) fn client_config(
    trust: &Trust,
    identity: Option<&ClientIdentity>,
) -> Result<ClientConfig, String> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let builder = match &trust.roots {
        Roots::Bundle(pem) => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Bundle::of_pem(pem)?)),
        Roots::System => builder
            .with_native_roots()
            .map_err(|error| format!("the system has no roots: {error}"))?,
        Roots::Unverified => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Unverified::new())),
    };
    Ok(match identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let mut config = builder.with_client_cert_resolver(identity.0.clone());
            // A resumed session would keep the certificate it started with.
            config.resumption = Resumption::disabled();
            config
        }
    })
}

/// Verifies against a bundle; a certificate that is itself in the bundle needs no issuer.
///
/// Webhooks often serve with the self-signed certificate that is their bundle, made by tools that mark every
/// self-signed certificate as an authority. Go's clients accept that; webpki alone would not.
#[derive(Debug)]
struct Bundle {
    inner: Arc<WebPkiServerVerifier>,
    known: Vec<CertificateDer<'static>>,
}

impl Bundle {
    fn of_pem(pem: &[u8]) -> Result<Bundle, String> {
        let mut roots = RootCertStore::empty();
        let mut known = Vec::new();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| error.to_string())?;
            // One invalid certificate does not make the others unusable.
            if roots.add(certificate.clone()).is_ok() {
                known.push(certificate);
            }
        }
        if known.is_empty() {
            return Err("it holds no certificate".to_owned());
        }
        let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider())
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Bundle { inner, known })
    }
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

    signatures_checked_by!(inner);
}

/// Accepts any certificate. The peer must still have its key.
#[derive(Debug)]
struct Unverified {
    signatures: rustls::crypto::WebPkiSupportedAlgorithms,
}

impl Unverified {
    fn new() -> Unverified {
        Unverified {
            signatures: provider().signature_verification_algorithms,
        }
    }
}

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.signatures)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.signatures)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signatures.supported_schemes()
    }
}

fn check_time(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let parsed = Certificate::parse(certificate).ok_or(CertificateError::BadEncoding)?;
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    if now < parsed.not_before {
        return Err(CertificateError::NotValidYet.into());
    }
    if now > parsed.not_after {
        return Err(CertificateError::Expired.into());
    }
    Ok(())
}

//! TLS towards those we call: whose certificates are trusted, and which one is shown.

use super::certificate::{ClientIdentity, provider};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper_rustls::ConfigBuilderExt as _;
use rustls::client::danger::{ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier, verify_server_name};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, Error, RootCertStore};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;

/// Tells bundles apart.
pub(crate) type Fingerprint = [u8; 32];

/// Whose certificates are trusted.
#[derive(Clone, Debug)]
pub(crate) struct Trust {
    /// PEM; nothing for the roots of the system.
    bundle: Option<Arc<[u8]>>,
    fingerprint: Fingerprint,
}

impl Trust {
    /// A bundle in base64, or the roots of the system if it is empty.
    pub(crate) fn of_base64(bundle: &str) -> Result<Trust, String> {
        let pem = BASE64_STANDARD
            .decode(bundle.trim())
            .map_err(|error| error.to_string())?;
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

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }
}

/// How to connect to those who are trusted so, showing a certificate or none.
pub(crate) fn client_config(
    trust: &Trust,
    identity: Option<&ClientIdentity>,
) -> Result<ClientConfig, String> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let builder = match &trust.bundle {
        Some(pem) => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Bundle::of_pem(pem)?)),
        None => builder
            .with_native_roots()
            .map_err(|error| format!("the system has no roots: {error}"))?,
    };
    Ok(match identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let mut config = builder.with_client_cert_resolver(identity.0.clone());
            // A resumed session would go on under the certificate it began with.
            config.resumption = Resumption::disabled();
            config
        }
    })
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

impl Bundle {
    fn of_pem(pem: &[u8]) -> Result<Bundle, String> {
        let mut roots = RootCertStore::empty();
        let mut known = Vec::new();
        for certificate in rustls_pemfile::certs(&mut &*pem) {
            let certificate = certificate.map_err(|error| error.to_string())?;
            // One odd certificate among many does not spoil the rest.
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

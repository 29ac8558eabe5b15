//! TLS to the database, by the client library's rustls.

use mysql_async::{ClientIdentity, SslOpts};

use super::address::Address;
use crate::address::TlsMode;
use crate::error::SqlError;
use crate::tls::{authorities, certificates, unusable};

/// Reads the certificate files of `address`. They are read for every connection, so that they can be renewed.
pub(super) fn of(address: &Address) -> Result<Option<SslOpts>, SqlError> {
    let (mode, files) = (address.tls, &address.files);
    if mode == TlsMode::Off {
        return Ok(None);
    }
    // The library uses the default provider of the process. It panics if there is no default and two providers are
    // compiled in.
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Another thread may have installed a provider in the meantime.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    let mut options = SslOpts::default();
    // A verifier needs an authority, even if the certificate is not checked.
    if mode != TlsMode::Encrypted {
        let mut roots = authorities(files.root.as_deref())?;
        // The library would refuse all authorities if it cannot read one of them.
        roots.retain(|root| rustls::RootCertStore::empty().add(root.clone()).is_ok());
        if roots.is_empty() {
            return Err(unusable(
                "the certificate authority",
                "no certificate was found",
            ));
        }
        let roots = roots.into_iter().map(|root| root.to_vec().into());
        options = options
            .with_root_certs(roots.collect())
            .with_disable_built_in_roots(true);
    }
    options = options
        .with_danger_accept_invalid_certs(mode == TlsMode::Encrypted)
        .with_danger_tls_hostname_override(address.tls_name.clone());
    match (&files.certificate, &files.key) {
        (Some(certificate), Some(key)) => {
            // The library's message does not name the file.
            certificates(certificate)?;
            let identity = ClientIdentity::new(certificate.clone().into(), key.clone().into());
            Ok(Some(options.with_client_identity(Some(identity))))
        }
        (None, None) => Ok(Some(options)),
        _ => Err(unusable("cert and key", "both or neither must be given")),
    }
}

//! Certificates for TLS to a database.

use std::path::Path;

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

use crate::error::SqlError;

pub(crate) fn unusable(
    what: impl Into<String>,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> SqlError {
    SqlError::Certificate {
        what: what.into(),
        source: source.into(),
    }
}

/// Reads the certificates in the file `path`.
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, SqlError> {
    let failed = |error| unusable(path.display().to_string(), error);
    CertificateDer::pem_file_iter(path)
        .map_err(failed)?
        .collect::<Result<_, _>>()
        .map_err(failed)
}

/// Reads the authorities in the file `path`; without a path, the authorities that this machine trusts.
pub(crate) fn authorities(path: Option<&Path>) -> Result<Vec<CertificateDer<'static>>, SqlError> {
    match path {
        Some(path) => certificates(path),
        None => Ok(rustls_native_certs::load_native_certs().certs),
    }
}

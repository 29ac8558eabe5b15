//! TLS to the members of the cluster, with rustls.

use std::path::Path;
use std::sync::Arc;

use bareboat_storage::BoxError;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::address::Address;
use crate::error::EtcdError;

/// Reads the certificate files of `address`. They are read for every connection, so that they can be renewed.
pub(crate) fn config(address: &Address) -> Result<Arc<ClientConfig>, EtcdError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    let found = match &address.ca {
        Some(path) => certificates(path)?,
        None => rustls_native_certs::load_native_certs().certs,
    };
    roots.add_parsable_certificates(found);
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable("TLS", error))?
        .with_root_certificates(roots);
    let mut config = match (&address.certificate, &address.key) {
        (Some(certificate), Some(key)) => {
            let chain = certificates(certificate)?;
            let named = key.display().to_string();
            let key = PrivateKeyDer::from_pem_file(key).map_err(|error| unusable(named, error))?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|error| unusable("the client certificate", error))?
        }
        _ => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Arc::new(config))
}

pub(crate) fn unusable(what: impl Into<String>, source: impl Into<BoxError>) -> EtcdError {
    EtcdError::Credentials {
        what: what.into(),
        source: source.into(),
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, EtcdError> {
    let failed = |error| unusable(path.display().to_string(), error);
    CertificateDer::pem_file_iter(path)
        .map_err(failed)?
        .collect::<Result<_, _>>()
        .map_err(failed)
}

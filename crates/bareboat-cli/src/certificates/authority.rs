//! A certificate authority of a data directory: made once, then kept. What others trust is never replaced silently.

use super::{Leaf, der, public_key, set_validity, write_private};
use crate::keys;
use anyhow::{Context, Result, anyhow, bail};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use x509_parser::prelude::{FromDer as _, ParsedExtension, X509Certificate};

const CA_DAYS: i64 = 3650;

/// A CA with its key.
pub(super) struct Authority {
    pub(super) pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Reads the CA called `file`. It is made only where neither certificate nor key exist.
    pub(super) fn ensure(dir: &Path, file: &str, common_name: &str) -> Result<Authority> {
        let cert_path = dir.join(format!("{file}.crt"));
        let key_path = dir.join(format!("{file}.key"));
        let unusable = || {
            format!(
                "the certificate authority {file} in {} cannot be used; put {file}.crt and {file}.key back from a backup, \
                 or move both away to get a new one, which clients of the old one do not trust",
                dir.display()
            )
        };
        let certificate = read(&cert_path).with_context(unusable)?;
        let key = match read(&key_path).with_context(unusable)? {
            Some(pem) => keys::parse(&pem)
                .map_err(|error| anyhow!("{}: {error:#}", key_path.display()))
                .with_context(unusable)?,
            None if certificate.is_some() => {
                return Err(anyhow!("{} is missing", key_path.display())).with_context(unusable);
            }
            None => {
                let key = KeyPair::generate().context("no key can be made")?;
                write_private(&key_path, &keys::to_pem(&key))?;
                key
            }
        };
        let pem = match certificate {
            Some(pem) => {
                let public = public_key(&pem)
                    .with_context(|| format!("{} is not a certificate", cert_path.display()))
                    .with_context(unusable)?;
                if public != key.public_key_raw() {
                    return Err(anyhow!(
                        "{} and {} do not belong together",
                        cert_path.display(),
                        key_path.display()
                    ))
                    .with_context(unusable);
                }
                pem
            }
            // A first start that was interrupted, or a lost file: the key is what others trust.
            None => {
                let pem = CertifiedIssuer::self_signed(params(common_name), &key)
                    .context("the CA cannot be made")?
                    .pem();
                write_private(&cert_path, &pem)?;
                pem
            }
        };
        let issuer = Issuer::from_ca_cert_pem(&pem, key).context("the CA cannot be used")?;
        Ok(Authority { pem, issuer })
    }

    /// A new key and a certificate of this CA, in PEM.
    pub(super) fn sign(&self, leaf: &Leaf<'_>) -> Result<(String, String)> {
        let key = KeyPair::generate().context("no key can be made")?;
        let cert = leaf
            .params()?
            .signed_by(&key, &self.issuer)
            .with_context(|| format!("the certificate {} cannot be made", leaf.file))?;
        Ok((cert.pem(), keys::to_pem(&key)))
    }

    /// Whether the certificate says that this CA signed it.
    pub(super) fn signed(&self, certificate: &X509Certificate<'_>) -> bool {
        let Some(ca) = der(&self.pem) else {
            return false;
        };
        let Ok((_, ca)) = X509Certificate::from_der(&ca) else {
            return false;
        };
        let own = ca
            .iter_extensions()
            .find_map(|e| match e.parsed_extension() {
                ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0),
                _ => None,
            });
        let named = certificate
            .iter_extensions()
            .find_map(|e| match e.parsed_extension() {
                ParsedExtension::AuthorityKeyIdentifier(id) => id.key_identifier.as_ref(),
                _ => None,
            });
        let same_key = match (own, named) {
            (Some(own), Some(named)) => own == named.0,
            _ => true,
        };
        same_key && certificate.issuer() == ca.subject()
    }
}

fn params(common_name: &str) -> CertificateParams {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    let mut params = CertificateParams::default();
    params.distinguished_name = name;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    set_validity(&mut params, CA_DAYS);
    params
}

/// The text of a file, `None` if there is none.
fn read(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => bail!("{} cannot be read: {error}", path.display()),
    }
}

//! A certificate authority of a data directory: made once, then kept. A CA that clients trust is never replaced
//! silently.

use super::{Leaf, now, write_private};
use anyhow::{Context, Result, anyhow, bail};
use bareboat_certificates::{CertificateAuthority as _, Issuer, KeyPair, Template, pem};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use x509_parser::prelude::{FromDer as _, ParsedExtension, X509Certificate};

const CA_DAYS: i64 = 3650;

/// A CA with its key.
pub(crate) struct Authority {
    pub(crate) pem: String,
    pub(crate) issuer: Issuer,
}

impl Authority {
    /// Reads the CA named `file`. Creates it only if neither certificate nor key exist.
    pub(crate) fn ensure(dir: &Path, file: &str, common_name: &str) -> Result<Authority> {
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
            Some(pem) => KeyPair::from_pem(&pem)
                .map_err(|error| anyhow!("{}: {error}", key_path.display()))
                .with_context(unusable)?,
            None if certificate.is_some() => {
                return Err(anyhow!("{} is missing", key_path.display())).with_context(unusable);
            }
            None => {
                let key = KeyPair::generate().context("a key cannot be generated")?;
                write_private(&key_path, &key.to_pem())?;
                key
            }
        };
        let pem = match certificate {
            Some(pem) => pem,
            // An interrupted first start, or a lost file: the certificate is made again from the key.
            None => {
                let (begin, end) = (now() - 86_400, now() + CA_DAYS * 86_400);
                let pem = Issuer::self_signed(common_name, &key, begin, end)
                    .context("the CA cannot be made")?;
                write_private(&cert_path, &pem)?;
                pem
            }
        };
        Authority::new(pem, key, &cert_path, &key_path).with_context(unusable)
    }

    /// Reads a CA that must be there.
    pub(crate) fn read(dir: &Path, file: &str) -> Result<Authority> {
        let (cert_path, key_path) = (
            dir.join(format!("{file}.crt")),
            dir.join(format!("{file}.key")),
        );
        let (Some(pem), Some(key)) = (read(&cert_path)?, read(&key_path)?) else {
            bail!(
                "there is no certificate authority {file} in {}; start the server once, or name its data directory with --data-dir",
                dir.display()
            );
        };
        let key =
            KeyPair::from_pem(&key).map_err(|error| anyhow!("{}: {error}", key_path.display()))?;
        Authority::new(pem, key, &cert_path, &key_path)
    }

    fn new(pem: String, key: KeyPair, cert_path: &Path, key_path: &Path) -> Result<Authority> {
        use bareboat_certificates::IssueError;
        let issuer = Issuer::new(&pem, key).map_err(|error| match error {
            IssueError::OtherKey => anyhow!(
                "{} and {} do not belong together",
                cert_path.display(),
                key_path.display()
            ),
            _ => anyhow!("{} is not a certificate", cert_path.display()),
        })?;
        Ok(Authority { pem, issuer })
    }

    /// Returns a new key and a certificate of this CA, in PEM.
    pub(super) fn sign(&self, leaf: &Leaf<'_>) -> Result<(String, String)> {
        let key = KeyPair::generate().context("a key cannot be generated")?;
        let mut template = Template::new(
            leaf.subject.to_der(),
            key.public_key_info(),
            // A day back, for clients whose clocks are late.
            now() - 86_400,
            (now() + leaf.seconds).min(self.issuer.ends()),
        );
        template.key_usages = vec![bareboat_certificates::KeyUsage::DigitalSignature];
        template.extended_usages = vec![leaf.usage];
        template.alternative_names = leaf.alternative_names()?;
        let certificate = self
            .issuer
            .issue(&template)
            .with_context(|| format!("the certificate {} cannot be made", leaf.file))?;
        Ok((certificate, key.to_pem()))
    }

    /// Returns whether the certificate names this CA as its issuer.
    pub(super) fn signed(&self, certificate: &X509Certificate<'_>) -> bool {
        let Some(ca) = pem::certificates(&self.pem).into_iter().next() else {
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

/// Returns the text of a file, `None` if it does not exist.
pub(super) fn read(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => bail!("{} cannot be read: {error}", path.display()),
    }
}

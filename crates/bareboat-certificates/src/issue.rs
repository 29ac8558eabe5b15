//! Certificates signed by an authority.
//!
//! A [`Template`] is the content of a certificate; an [`Issuer`] signs it. A subject may name several organizations, which
//! are the groups of a user.

use crate::der::{
    self, BIT_STRING, BOOLEAN, GENERALIZED_TIME, OBJECT, OCTET_STRING, Reader, SEQUENCE, SET,
    UTC_TIME, UTF8_STRING, element, explicit, implicit, integer, oid, sequence,
};
use crate::keys::{KeyError, KeyPair};
use crate::pem;
use bareboat_api::time::Timestamp;
use ring::rand::{SecureRandom as _, SystemRandom};
use sha2::{Digest as _, Sha256};
use std::net::IpAddr;
use x509_parser::prelude::{FromDer as _, ParsedExtension, X509Certificate};

/// Why no certificate was issued.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IssueError {
    /// The text of the authority holds no certificate.
    #[error("it is not a certificate")]
    NotACertificate,
    /// The private key does not belong to the certificate.
    #[error("the certificate and the key do not belong together")]
    OtherKey,
    /// The validity cannot be written as an X.509 time.
    #[error("the time is out of range")]
    Time,
    /// The key cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// An authority outside this process failed.
    #[error("{0}")]
    Other(String),
}

/// The subject of a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The common name: the name of a user.
    pub common_name: String,
    /// The organizations: the groups of a user.
    pub organizations: Vec<String>,
}

impl Subject {
    /// Returns a subject without organizations.
    pub fn new(common_name: impl Into<String>) -> Subject {
        Subject {
            common_name: common_name.into(),
            organizations: Vec::new(),
        }
    }

    /// Returns the Name in DER: organizations first, then the common name, each in a set of its own.
    pub fn to_der(&self) -> Vec<u8> {
        let attribute = |oid: &[u8], text: &str| {
            let value = element(UTF8_STRING, &[text.as_bytes()]);
            element(SET, &[&sequence(&[&element(OBJECT, &[oid]), &value])])
        };
        let mut parts: Vec<Vec<u8>> = self
            .organizations
            .iter()
            .map(|organization| attribute(oid::ORGANIZATION, organization))
            .collect();
        parts.push(attribute(oid::COMMON_NAME, &self.common_name));
        join(SEQUENCE, &parts)
    }
}

/// What a key may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyUsage {
    /// digitalSignature.
    DigitalSignature,
    /// keyEncipherment.
    KeyEncipherment,
    /// keyCertSign.
    CertSign,
    /// cRLSign.
    CrlSign,
}

impl KeyUsage {
    fn bit(self) -> u8 {
        match self {
            KeyUsage::DigitalSignature => 0,
            KeyUsage::KeyEncipherment => 2,
            KeyUsage::CertSign => 5,
            KeyUsage::CrlSign => 6,
        }
    }
}

/// What a certificate may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtendedUsage {
    /// TLS client authentication.
    ClientAuth,
    /// TLS server authentication.
    ServerAuth,
}

/// A name a server is reached by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlternativeName {
    /// A DNS name.
    Dns(String),
    /// An IP address.
    Address(IpAddr),
}

/// The content of a certificate to issue.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Template {
    /// The subject, a Name in DER.
    pub subject: Vec<u8>,
    /// The public key, a SubjectPublicKeyInfo in DER.
    pub public_key_info: Vec<u8>,
    /// The first second of its validity, since 1970.
    pub not_before: i64,
    /// The last second of its validity, since 1970.
    pub not_after: i64,
    /// What the key may be used for.
    pub key_usages: Vec<KeyUsage>,
    /// What the certificate may be used for.
    pub extended_usages: Vec<ExtendedUsage>,
    /// DNS names and addresses that the certificate is valid for, if it is for a server.
    pub alternative_names: Vec<AlternativeName>,
    /// Whether the certificate is that of a CA.
    pub authority: bool,
}

impl Template {
    /// Returns the template of a certificate without extensions.
    pub fn new(
        subject: Vec<u8>,
        public_key_info: Vec<u8>,
        not_before: i64,
        not_after: i64,
    ) -> Template {
        Template {
            subject,
            public_key_info,
            not_before,
            not_after,
            key_usages: Vec::new(),
            extended_usages: Vec::new(),
            alternative_names: Vec::new(),
            authority: false,
        }
    }

    fn extensions(&self, own_id: &[u8], authority_id: Option<&[u8]>) -> Vec<u8> {
        let mut all = Vec::new();
        let constraints = match self.authority {
            true => sequence(&[&element(BOOLEAN, &[&[0xff]])]),
            false => sequence(&[]),
        };
        all.push(extension(oid::BASIC_CONSTRAINTS, true, &constraints));
        if !self.key_usages.is_empty() {
            let usages = key_usage(&self.key_usages);
            all.push(extension(oid::KEY_USAGE, true, &usages));
        }
        if !self.extended_usages.is_empty() {
            let usages = self.extended_usages.iter().map(|usage| {
                let oid = match usage {
                    ExtendedUsage::ClientAuth => oid::CLIENT_AUTH,
                    ExtendedUsage::ServerAuth => oid::SERVER_AUTH,
                };
                element(OBJECT, &[oid])
            });
            let usages = join(SEQUENCE, &usages.collect::<Vec<_>>());
            all.push(extension(oid::EXTENDED_KEY_USAGE, false, &usages));
        }
        if self.authority {
            let id = element(OCTET_STRING, &[own_id]);
            all.push(extension(oid::SUBJECT_KEY_ID, false, &id));
        }
        if let Some(id) = authority_id {
            let id = sequence(&[&element(implicit(0), &[id])]);
            all.push(extension(oid::AUTHORITY_KEY_ID, false, &id));
        }
        if !self.alternative_names.is_empty() {
            let names = self.alternative_names.iter().map(|name| match name {
                AlternativeName::Dns(name) => element(implicit(2), &[name.as_bytes()]),
                AlternativeName::Address(IpAddr::V4(ip)) => element(implicit(7), &[&ip.octets()]),
                AlternativeName::Address(IpAddr::V6(ip)) => element(implicit(7), &[&ip.octets()]),
            });
            let names = join(SEQUENCE, &names.collect::<Vec<_>>());
            all.push(extension(oid::ALTERNATIVE_NAMES, false, &names));
        }
        element(explicit(3), &[&join(SEQUENCE, &all)])
    }
}

/// Signs certificates. The key may be in this process or elsewhere.
///
/// ```
/// # mod bareboat { pub mod certificates { pub use bareboat_certificates::*; } }
/// use bareboat::certificates::{CertificateAuthority, IssueError, Issuer, Template};
///
/// /// An authority whose certificates last an hour at most.
/// struct ShortLived(Issuer);
///
/// impl CertificateAuthority for ShortLived {
///     fn issue(&self, template: &Template) -> Result<String, IssueError> {
///         let mut template = template.clone();
///         template.not_after = template.not_after.min(template.not_before + 3600);
///         self.0.issue(&template)
///     }
///
///     fn ends(&self) -> i64 {
///         self.0.ends()
///     }
/// }
/// ```
pub trait CertificateAuthority: Send + Sync {
    /// Signs a certificate and returns it in PEM.
    fn issue(&self, template: &Template) -> Result<String, IssueError>;

    /// Returns the last second in which the authority itself is valid, since 1970. Its certificates should not last longer.
    fn ends(&self) -> i64;
}

/// An authority whose key is in this process.
#[derive(Debug)]
pub struct Issuer {
    key: KeyPair,
    /// The subject of the CA certificate, a Name in DER.
    name: Vec<u8>,
    key_id: Vec<u8>,
    ends: i64,
}

impl Issuer {
    /// Returns an authority from its certificate and its key in PEM.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Issuer, IssueError> {
        Issuer::new(certificate, KeyPair::from_pem(key)?)
    }

    /// Returns an authority from its certificate in PEM and its key.
    pub fn new(certificate: &str, key: KeyPair) -> Result<Issuer, IssueError> {
        let der = pem::certificates(certificate).into_iter().next();
        let der = der.ok_or(IssueError::NotACertificate)?;
        let (_, parsed) =
            X509Certificate::from_der(&der).map_err(|_| IssueError::NotACertificate)?;
        if *parsed.public_key().subject_public_key.data != *key.public_key() {
            return Err(IssueError::OtherKey);
        }
        let named =
            parsed
                .iter_extensions()
                .find_map(|extension| match extension.parsed_extension() {
                    ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0.to_vec()),
                    _ => None,
                });
        Ok(Issuer {
            name: parsed.subject().as_raw().to_vec(),
            key_id: named.unwrap_or_else(|| key_id(&key)),
            ends: parsed.validity().not_after.timestamp(),
            key,
        })
    }

    /// Makes the certificate of a new authority, in PEM.
    pub fn self_signed(
        common_name: &str,
        key: &KeyPair,
        not_before: i64,
        not_after: i64,
    ) -> Result<String, IssueError> {
        let name = Subject::new(common_name).to_der();
        let mut template =
            Template::new(name.clone(), key.public_key_info(), not_before, not_after);
        template.authority = true;
        template.key_usages = vec![
            KeyUsage::CertSign,
            KeyUsage::CrlSign,
            KeyUsage::DigitalSignature,
        ];
        sign(&template, key, &name, None)
    }
}

impl CertificateAuthority for Issuer {
    fn issue(&self, template: &Template) -> Result<String, IssueError> {
        sign(template, &self.key, &self.name, Some(&self.key_id))
    }

    fn ends(&self) -> i64 {
        self.ends
    }
}

fn key_id(key: &KeyPair) -> Vec<u8> {
    Sha256::digest(key.public_key_info())[..20].to_vec()
}

fn sign(
    template: &Template,
    key: &KeyPair,
    issuer: &[u8],
    authority_id: Option<&[u8]>,
) -> Result<String, IssueError> {
    let mut serial = [0; 16];
    SystemRandom::new()
        .fill(&mut serial)
        .map_err(|_| KeyError::Random)?;
    // Positive, and of full length.
    serial[0] = serial[0] & 0x7f | 0x40;
    let algorithm = key.signature_algorithm();
    let version = element(explicit(0), &[&integer(&[2])]);
    let validity = sequence(&[&time(template.not_before)?, &time(template.not_after)?]);
    let extensions = template.extensions(&key_id(key), authority_id);
    let content = sequence(&[
        &version,
        &integer(&serial),
        &algorithm,
        issuer,
        &validity,
        &template.subject,
        &template.public_key_info,
        &extensions,
    ]);
    let signature = key.sign(&content)?;
    let certificate = sequence(&[&content, &algorithm, &der::bits(&signature)]);
    Ok(pem::encode("CERTIFICATE", &certificate))
}

fn extension(oid: &[u8], critical: bool, value: &[u8]) -> Vec<u8> {
    let critical = match critical {
        true => element(BOOLEAN, &[&[0xff]]),
        false => Vec::new(),
    };
    sequence(&[
        &element(OBJECT, &[oid]),
        &critical,
        &element(OCTET_STRING, &[value]),
    ])
}

/// Returns a BIT STRING of named bits, without trailing zeros.
fn key_usage(usages: &[KeyUsage]) -> Vec<u8> {
    let bits = usages
        .iter()
        .fold(0u8, |bits, usage| bits | 0x80 >> usage.bit());
    element(BIT_STRING, &[&[bits.trailing_zeros() as u8, bits]])
}

/// Encodes a time: UTCTime until 2049, GeneralizedTime after that.
fn time(seconds: i64) -> Result<Vec<u8>, IssueError> {
    let epoch = Timestamp {
        seconds: 0,
        nanos: 0,
    };
    let time = epoch.plus_seconds(seconds).ok_or(IssueError::Time)?;
    let mut text = time.print_seconds();
    text.retain(|letter| !matches!(letter, '-' | ':' | 'T'));
    let (tag, text) = match ("1950".."2050").contains(&&text[..4]) {
        true => (UTC_TIME, &text[2..]),
        false => (GENERALIZED_TIME, &text[..]),
    };
    Ok(element(tag, &[text.as_bytes()]))
}

fn join(tag: u8, parts: &[Vec<u8>]) -> Vec<u8> {
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    element(tag, &parts)
}

/// Returns whether bytes are exactly one DER SEQUENCE.
pub(crate) fn is_sequence(bytes: &[u8]) -> bool {
    Reader(bytes)
        .take(SEQUENCE)
        .is_some_and(|(_, rest)| rest.0.is_empty())
}

#[cfg(test)]
mod tests;

//! The certificates a server makes for itself: a CA, its own, and the administrator's; and apart from them those by which
//! others know it when it asks on behalf of somebody.

mod authority;

use crate::keys;
use anyhow::{Context, Result};
use authority::Authority;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::pki_types::CertificateDer;
use std::fs;
use std::io::Write as _;
use std::net::IpAddr;
use std::path::Path;
use std::str::FromStr as _;
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

/// Made anew when less than this is left of it.
const RENEW_BEFORE_DAYS: i64 = 30;
const LEAF_DAYS: i64 = 365;

/// Everything a server needs to be known and to know its administrator, in PEM.
pub(crate) struct Certificates {
    pub(crate) ca: String,
    pub(crate) server: (String, String),
    pub(crate) admin: (String, String),
    /// Signs nothing but the next one, so that nobody else can say who is asking.
    pub(crate) front_proxy_ca: String,
    pub(crate) front_proxy: (String, String),
}

/// The name under which the server asks on behalf of others.
pub(crate) const FRONT_PROXY: &str = "front-proxy-client";

/// Reads the certificates of a data directory. Those that are missing, expire soon or do not cover all names are made.
/// A CA that is damaged is an error.
pub(crate) fn ensure(dir: &Path, names: &[String], bind: IpAddr) -> Result<Certificates> {
    let dir = dir.join("certificates");
    fs::create_dir_all(&dir)
        .with_context(|| format!("the directory {} cannot be made", dir.display()))?;
    let ca = Authority::ensure(&dir, "ca", "bareboat-ca")?;
    let mut wanted = vec![
        "localhost".to_owned(),
        "kubernetes".to_owned(),
        "kubernetes.default".to_owned(),
        "kubernetes.default.svc".to_owned(),
        "127.0.0.1".to_owned(),
        "::1".to_owned(),
    ];
    if !bind.is_unspecified() && !bind.is_loopback() {
        wanted.push(bind.to_string());
    }
    wanted.extend(names.iter().cloned());
    let server = Leaf {
        file: "server",
        common_name: "bareboat",
        organization: None,
        names: &wanted,
        usage: ExtendedKeyUsagePurpose::ServerAuth,
    };
    let admin = Leaf {
        file: "admin",
        common_name: "bareboat-admin",
        organization: Some("system:masters"),
        names: &[],
        usage: ExtendedKeyUsagePurpose::ClientAuth,
    };
    let front_proxy = Leaf {
        file: FRONT_PROXY,
        common_name: FRONT_PROXY,
        organization: None,
        names: &[],
        usage: ExtendedKeyUsagePurpose::ClientAuth,
    };
    let front_proxy_ca = Authority::ensure(&dir, "front-proxy-ca", "bareboat-front-proxy-ca")?;
    let server = server.ensure(&dir, &ca)?;
    let admin = admin.ensure(&dir, &ca)?;
    let front_proxy = front_proxy.ensure(&dir, &front_proxy_ca)?;
    Ok(Certificates {
        ca: ca.pem,
        server,
        admin,
        front_proxy_ca: front_proxy_ca.pem,
        front_proxy,
    })
}

/// A certificate to be signed by a CA.
struct Leaf<'a> {
    file: &'a str,
    common_name: &'a str,
    organization: Option<&'a str>,
    names: &'a [String],
    usage: ExtendedKeyUsagePurpose,
}

impl Leaf<'_> {
    /// The certificate and its key: those in the directory while they are good, else new ones.
    fn ensure(&self, dir: &Path, ca: &Authority) -> Result<(String, String)> {
        let cert_path = dir.join(format!("{}.crt", self.file));
        let key_path = dir.join(format!("{}.key", self.file));
        if let (Ok(cert), Ok(key)) = (
            fs::read_to_string(&cert_path),
            fs::read_to_string(&key_path),
        ) && is_good(&cert, &key, self.names, ca)
        {
            return Ok((cert, key));
        }
        let (cert, key) = ca.sign(self)?;
        let kept = write_private(&key_path, &key).and_then(|()| write_private(&cert_path, &cert));
        if let Err(error) = kept {
            // It serves as well from memory; the next start makes another one.
            tracing::warn!(error = %format!("{error:#}"), "a certificate was made and could not be saved");
        }
        Ok((cert, key))
    }

    fn params(&self) -> Result<CertificateParams> {
        let mut subject = DistinguishedName::new();
        subject.push(DnType::CommonName, self.common_name);
        if let Some(organization) = self.organization {
            subject.push(DnType::OrganizationName, organization);
        }
        let mut params = CertificateParams::default();
        params.distinguished_name = subject;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![self.usage.clone()];
        params.use_authority_key_identifier_extension = true;
        params.subject_alt_names = (self.names.iter())
            .map(|name| alternative_name(name))
            .collect::<Result<_>>()?;
        set_validity(&mut params, LEAF_DAYS);
        Ok(params)
    }
}

fn alternative_name(name: &str) -> Result<SanType> {
    if let Ok(address) = IpAddr::from_str(name) {
        return Ok(SanType::IpAddress(address));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '*');
    let dns = match name.is_empty() || !name.chars().all(plain) {
        true => None,
        false => name.try_into().ok(),
    };
    let dns = dns.with_context(|| format!("{name} is neither a DNS name nor an IP address"))?;
    Ok(SanType::DnsName(dns))
}

fn set_validity(params: &mut CertificateParams, days: i64) {
    let now = jiff::Timestamp::now().as_second();
    let date = |seconds: i64| {
        let time = jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        let date = time.to_zoned(jiff::tz::TimeZone::UTC).date();
        rcgen::date_time_ymd(date.year().into(), date.month() as u8, date.day() as u8)
    };
    // A day back, for clients whose clocks are late.
    params.not_before = date(now - 86_400);
    params.not_after = date(now + days * 86_400);
}

/// Whether a certificate still lasts a while, covers all names, comes from the CA and belongs to its key.
fn is_good(pem: &str, key: &str, names: &[String], ca: &Authority) -> bool {
    let Some(der) = der(pem) else {
        return false;
    };
    let Ok((_, cert)) = X509Certificate::from_der(&der) else {
        return false;
    };
    let now = jiff::Timestamp::now().as_second();
    if cert.validity().not_after.timestamp() < now + RENEW_BEFORE_DAYS * 86_400 {
        return false;
    }
    let covered = alternative_names(&cert);
    let fits = |key: KeyPair| key.public_key_raw() == &*cert.public_key().subject_public_key.data;
    names.iter().all(|name| covered.contains(name))
        && ca.signed(&cert)
        && keys::parse(key).is_ok_and(fits)
}

/// The first certificate of a chain in PEM.
fn der(pem: &str) -> Option<CertificateDer<'static>> {
    rustls_pemfile::certs(&mut pem.as_bytes()).next()?.ok()
}

/// The public key of the first certificate of a chain in PEM.
fn public_key(pem: &str) -> Option<Vec<u8>> {
    let der = der(pem)?;
    let (_, cert) = X509Certificate::from_der(&der).ok()?;
    Some(cert.public_key().subject_public_key.data.to_vec())
}

/// The names and addresses the first certificate of a chain is good for.
pub(crate) fn names(pem: &str) -> Vec<String> {
    let Some(der) = der(pem) else {
        return Vec::new();
    };
    match X509Certificate::from_der(&der) {
        Ok((_, cert)) => alternative_names(&cert),
        Err(_) => Vec::new(),
    }
}

fn alternative_names(cert: &X509Certificate<'_>) -> Vec<String> {
    match cert.subject_alternative_name() {
        Ok(Some(extension)) => extension
            .value
            .general_names
            .iter()
            .filter_map(|name| match name {
                GeneralName::DNSName(name) => Some((*name).to_owned()),
                GeneralName::IPAddress(bytes) => match bytes.len() {
                    4 => <[u8; 4]>::try_from(*bytes)
                        .ok()
                        .map(|bytes| IpAddr::from(bytes).to_string()),
                    16 => <[u8; 16]>::try_from(*bytes)
                        .ok()
                        .map(|bytes| IpAddr::from(bytes).to_string()),
                    _ => None,
                },
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// Writes a file that only its owner may read, in one step.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let partial = path.with_extension("partial");
    let write = || -> std::io::Result<()> {
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&partial)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&partial, path)
    };
    let written = write();
    if written.is_err() {
        // Half a file is of no use, and on a full disk it takes space.
        let _ = fs::remove_file(&partial);
    }
    written.with_context(|| format!("{} cannot be written", path.display()))
}

#[cfg(test)]
mod tests;

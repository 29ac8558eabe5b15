//! The certificates a server makes for itself: a CA, its own, and the administrator's; and apart from them those by which
//! others know it when it asks on behalf of somebody.

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, SanType,
};
use std::fs;
use std::io::Write as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

/// Made anew when less than this is left of it.
const RENEW_BEFORE_DAYS: i64 = 30;
const LEAF_DAYS: i64 = 365;
const CA_DAYS: i64 = 3650;

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

/// Reads the certificates of a data directory, making those that are missing, expiring, or not
/// good for the names asked for.
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
    let server = ca.leaf(
        &dir,
        "server",
        "bareboat",
        None,
        &wanted,
        ExtendedKeyUsagePurpose::ServerAuth,
    )?;
    let admin = ca.leaf(
        &dir,
        "admin",
        "bareboat-admin",
        Some("system:masters"),
        &[],
        ExtendedKeyUsagePurpose::ClientAuth,
    )?;
    let front_proxy_ca = Authority::ensure(&dir, "front-proxy-ca", "bareboat-front-proxy-ca")?;
    let front_proxy = front_proxy_ca.leaf(
        &dir,
        FRONT_PROXY,
        FRONT_PROXY,
        None,
        &[],
        ExtendedKeyUsagePurpose::ClientAuth,
    )?;
    Ok(Certificates {
        ca: ca.pem,
        server,
        admin,
        front_proxy_ca: front_proxy_ca.pem,
        front_proxy,
    })
}

/// A CA of a data directory.
struct Authority {
    pem: String,
    issuer: CertifiedIssuer<'static, KeyPair>,
    /// Whether it was made just now, so that nothing it signed before is worth keeping.
    fresh: bool,
}

impl Authority {
    fn ensure(dir: &Path, file: &str, common_name: &str) -> Result<Authority> {
        let cert_path = dir.join(format!("{file}.crt"));
        let key_path = dir.join(format!("{file}.key"));
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
        let known = match (
            fs::read_to_string(&cert_path),
            fs::read_to_string(&key_path),
        ) {
            (Ok(cert), Ok(key)) => KeyPair::from_pem(&key).ok().map(|key| (cert, key)),
            _ => None,
        };
        // The key is what counts: with it the same name signs on, and what it signed stays good.
        let fresh = known.is_none();
        let (pem, key) = match known {
            Some((pem, key)) => (Some(pem), key),
            None => (None, KeyPair::generate().context("no key can be made")?),
        };
        let key_pem = key.serialize_pem();
        let issuer = CertifiedIssuer::self_signed(params, key).context("the CA cannot be made")?;
        let pem = match pem {
            Some(pem) => pem,
            None => {
                let pem = issuer.pem();
                write_private(&key_path, &key_pem)?;
                write_private(&cert_path, &pem)?;
                pem
            }
        };
        Ok(Authority { pem, issuer, fresh })
    }

    fn leaf(
        &self,
        dir: &Path,
        file: &str,
        common_name: &str,
        organization: Option<&str>,
        names: &[String],
        usage: ExtendedKeyUsagePurpose,
    ) -> Result<(String, String)> {
        let (cert_path, key_path): (PathBuf, PathBuf) = (
            dir.join(format!("{file}.crt")),
            dir.join(format!("{file}.key")),
        );
        if let (Ok(cert), Ok(key), false) = (
            fs::read_to_string(&cert_path),
            fs::read_to_string(&key_path),
            self.fresh,
        ) && is_good(&cert, names)
        {
            return Ok((cert, key));
        }
        let mut subject = DistinguishedName::new();
        subject.push(DnType::CommonName, common_name);
        if let Some(organization) = organization {
            subject.push(DnType::OrganizationName, organization);
        }
        let mut params = CertificateParams::default();
        params.distinguished_name = subject;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        params.use_authority_key_identifier_extension = true;
        params.subject_alt_names = names
            .iter()
            .map(|name| alternative_name(name))
            .collect::<Result<_>>()?;
        set_validity(&mut params, LEAF_DAYS);
        let key = KeyPair::generate().context("no key can be made")?;
        let cert = params
            .signed_by(&key, &self.issuer)
            .with_context(|| format!("the certificate {file} cannot be made"))?;
        let (cert, key) = (cert.pem(), key.serialize_pem());
        write_private(&key_path, &key)?;
        write_private(&cert_path, &cert)?;
        Ok((cert, key))
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

/// Whether a certificate still lasts a while and covers all names.
fn is_good(pem: &str, names: &[String]) -> bool {
    let Some(Ok(der)) = rustls_pemfile::certs(&mut pem.as_bytes()).next() else {
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
    names.iter().all(|name| covered.contains(name))
}

/// The names and addresses the first certificate of a chain is good for.
pub(crate) fn names(pem: &str) -> Vec<String> {
    let Some(Ok(der)) = rustls_pemfile::certs(&mut pem.as_bytes()).next() else {
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
    write().with_context(|| format!("{} cannot be written", path.display()))
}

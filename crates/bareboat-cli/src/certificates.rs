//! The certificates of a data directory: a CA, the certificate the server serves with, the administrator's, and the client
//! certificate presented to upstream servers, which has a CA of its own.

mod authority;
mod list;
mod rotate;

pub(crate) use authority::Authority;
pub(crate) use list::list;
pub(crate) use rotate::{Part, rotate};

use anyhow::{Context, Result};
use bareboat_certificates::{AlternativeName, ExtendedUsage, KeyPair, Subject, pem};
use std::fs;
use std::io::Write as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

/// A certificate with less time left is replaced.
const RENEW_BEFORE_DAYS: i64 = 30;
const LEAF_DAYS: i64 = 365;

/// The certificates and keys of a server, in PEM.
pub(crate) struct Certificates {
    pub(crate) ca: String,
    pub(crate) server: (String, String),
    pub(crate) admin: (String, String),
    /// Signs nothing but the next one, so that no other certificate allows its holder to name users.
    pub(crate) front_proxy_ca: String,
    pub(crate) front_proxy: (String, String),
}

/// The common name of the client certificate presented to upstream servers.
pub(crate) const FRONT_PROXY: &str = "front-proxy-client";

/// The folder of a data directory that certificates are in.
pub(crate) fn folder(data: &Path) -> PathBuf {
    data.join("certificates")
}

/// Reads the certificates of a data directory. Makes those that are missing, expire soon or do not cover all names. A
/// damaged CA is an error.
pub(crate) fn ensure(data: &Path, names: &[String], bind: IpAddr) -> Result<Certificates> {
    let dir = folder(data);
    fs::create_dir_all(&dir)
        .with_context(|| format!("the directory {} cannot be made", dir.display()))?;
    let ca = Authority::ensure(&dir, "ca", "bareboat-ca")?;
    let mut wanted: Vec<String> = [
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "127.0.0.1",
        "::1",
    ]
    .map(str::to_owned)
    .to_vec();
    if !bind.is_unspecified() && !bind.is_loopback() {
        wanted.push(bind.to_string());
    }
    wanted.extend(names.iter().cloned());
    let front_proxy_ca = Authority::ensure(&dir, "front-proxy-ca", "bareboat-front-proxy-ca")?;
    let server = Leaf::server(&wanted).ensure(&dir, &ca)?;
    let admin = Leaf::admin().ensure(&dir, &ca)?;
    let front_proxy = Leaf::front_proxy().ensure(&dir, &front_proxy_ca)?;
    Ok(Certificates {
        ca: ca.pem,
        server,
        admin,
        front_proxy_ca: front_proxy_ca.pem,
        front_proxy,
    })
}

/// A certificate to be signed by a CA.
pub(crate) struct Leaf<'a> {
    file: &'a str,
    subject: Subject,
    names: &'a [String],
    usage: ExtendedUsage,
    seconds: i64,
}

impl<'a> Leaf<'a> {
    fn server(names: &'a [String]) -> Leaf<'a> {
        Leaf {
            file: "server",
            subject: Subject::new("bareboat"),
            names,
            usage: ExtendedUsage::ServerAuth,
            seconds: LEAF_DAYS * 86_400,
        }
    }

    fn admin() -> Leaf<'static> {
        let mut subject = Subject::new("bareboat-admin");
        subject.organizations.push("system:masters".to_owned());
        Leaf {
            subject,
            ..Leaf::client("admin", LEAF_DAYS * 86_400)
        }
    }

    fn front_proxy() -> Leaf<'static> {
        Leaf {
            subject: Subject::new(FRONT_PROXY),
            ..Leaf::client(FRONT_PROXY, LEAF_DAYS * 86_400)
        }
    }

    fn client(file: &'static str, seconds: i64) -> Leaf<'static> {
        Leaf {
            file,
            subject: Subject::default(),
            names: &[],
            usage: ExtendedUsage::ClientAuth,
            seconds,
        }
    }

    /// Returns the certificate and its key: those in the directory if they are valid, otherwise new ones.
    fn ensure(&self, dir: &Path, ca: &Authority) -> Result<(String, String)> {
        let [cert_path, key_path] = self.paths(dir);
        let read = |path: &Path| fs::read_to_string(path).map_err(|error| error.to_string());
        let found = read(&cert_path).and_then(|cert| Ok((cert, read(&key_path)?)));
        let fault = match found {
            Ok((cert, key)) => match fault(&cert, &key, self.names, ca) {
                None => return Ok((cert, key)),
                Some(why) => why.to_owned(),
            },
            Err(why) => why,
        };
        if cert_path.exists() || key_path.exists() {
            let certificate = cert_path.display();
            tracing::warn!(%certificate, why = fault, "a certificate of the server is replaced");
        }
        let (cert, key) = ca.sign(self)?;
        if let Err(error) = self.save(dir, &cert, &key) {
            // The server uses it from memory; the next start makes another one.
            tracing::warn!(error = %format!("{error:#}"), "a certificate was made and could not be saved");
        }
        Ok((cert, key))
    }

    fn paths(&self, dir: &Path) -> [PathBuf; 2] {
        ["crt", "key"].map(|end| dir.join(format!("{}.{end}", self.file)))
    }

    fn save(&self, dir: &Path, cert: &str, key: &str) -> Result<()> {
        let [cert_path, key_path] = self.paths(dir);
        write_private(&key_path, key).and_then(|()| write_private(&cert_path, cert))
    }

    fn alternative_names(&self) -> Result<Vec<AlternativeName>> {
        self.names
            .iter()
            .map(|name| alternative_name(name))
            .collect()
    }
}

/// A certificate of the data directory's CA for a user, with its key, in PEM.
pub(crate) fn user(data: &Path, subject: Subject, seconds: i64) -> Result<(String, String)> {
    let leaf = Leaf {
        subject,
        ..Leaf::client("user", seconds)
    };
    Authority::read(&folder(data), "ca")?.sign(&leaf)
}

fn alternative_name(name: &str) -> Result<AlternativeName> {
    if let Ok(address) = IpAddr::from_str(name) {
        return Ok(AlternativeName::Address(address));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '*');
    match name.is_empty() || !name.chars().all(plain) {
        true => anyhow::bail!("{name} is neither a DNS name nor an IP address"),
        false => Ok(AlternativeName::Dns(name.to_owned())),
    }
}

/// Seconds since 1970.
pub(crate) fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

/// Returns why a certificate must be replaced; `None` if it lasts long enough, covers all names, is signed by the CA and matches
/// its key.
fn fault(text: &str, key: &str, names: &[String], ca: &Authority) -> Option<&'static str> {
    let der = first(text);
    let Some(Ok((_, cert))) = der.as_deref().map(X509Certificate::from_der) else {
        return Some("it is not a certificate");
    };
    let Ok(key) = KeyPair::from_pem(key) else {
        return Some("its key cannot be used");
    };
    let covered = alternative_names(&cert);
    if key.public_key() != &*cert.public_key().subject_public_key.data {
        Some("it is for another key")
    } else if !ca.signed(&cert) {
        Some("another CA signed it")
    } else if cert.validity().not_after.timestamp() < now() + RENEW_BEFORE_DAYS * 86_400 {
        Some("it expires soon")
    } else if !names.iter().all(|name| covered.contains(name)) {
        Some("it lacks a name of the server")
    } else {
        None
    }
}

/// Returns the first certificate of a PEM chain.
fn first(text: &str) -> Option<Vec<u8>> {
    pem::certificates(text).into_iter().next()
}

/// Returns the names and addresses that the first certificate of a chain covers.
pub(crate) fn names(pem: &str) -> Vec<String> {
    let Some(der) = first(pem) else {
        return Vec::new();
    };
    match X509Certificate::from_der(&der) {
        Ok((_, cert)) => alternative_names(&cert),
        Err(_) => Vec::new(),
    }
}

/// The last second the first certificate of a chain is valid, since 1970.
pub(crate) fn ends(pem: &str) -> Option<i64> {
    let der = first(pem)?;
    let (_, cert) = X509Certificate::from_der(&der).ok()?;
    Some(cert.validity().not_after.timestamp())
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

/// Writes a file atomically that only its owner may read.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
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
        // A partial file is useless, and takes space on a full disk.
        let _ = fs::remove_file(&partial);
    }
    written.with_context(|| format!("{} cannot be written", path.display()))
}

#[cfg(test)]
mod tests;

//! The parts of database addresses that are the same for every database.

use std::path::PathBuf;

use crate::error::SqlError;
use crate::tls::unusable;

/// The reason why an address cannot be used. Never contains a password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The address is not a database URL.
    #[error("the address of the database is not a {scheme}:// URL that can be read")]
    Malformed {
        /// The scheme of the URL.
        scheme: &'static str,
        /// The error of the URL parser or of the client library.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The name of a parameter is not known, or its value is not allowed.
    #[error("{name}={value} in the address of the database: {why}")]
    Parameter {
        /// The name of the parameter.
        name: String,
        /// The value of the parameter.
        value: String,
        /// The reason why the parameter is refused.
        why: &'static str,
    },
}

/// What a store does after a standby was promoted to primary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Failover {
    /// Begins another epoch: clients list again, because the standby may lack writes.
    #[default]
    Relist,
    /// Continues the history if the last known batch is found, because replication is synchronous.
    Trust,
}

/// How the certificate of the server is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TlsMode {
    Off,
    /// The connection is encrypted; the certificate is not checked.
    Encrypted,
    /// A known authority has signed the certificate; its name is not checked. Only PostgreSQL's client supports this.
    #[cfg_attr(not(feature = "postgres"), expect(dead_code))]
    VerifyCa,
    /// A known authority has signed the certificate, and the certificate names the host.
    VerifyFull,
}

/// The paths of certificate files. The files are read for every connection, so that they can be renewed.
#[derive(Default)]
pub(crate) struct Files {
    pub(crate) root: Option<PathBuf>,
    pub(crate) certificate: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
}

/// The parameters that have the same meaning for every database.
#[derive(Default)]
pub(crate) struct Choices {
    pub(crate) failover: Failover,
    /// Whether a database whose settings may lose writes is accepted.
    pub(crate) unsafe_accepted: bool,
    /// The file with the password. It is read for every connection, so that the password can be changed.
    password_file: Option<PathBuf>,
}

impl Choices {
    /// Stores the parameter `name`; returns false if `name` is not a parameter of `Choices`.
    pub(crate) fn take(&mut self, name: &str, value: &str) -> Result<bool, AddressError> {
        match name {
            "failover" => {
                self.failover = match value {
                    "relist" => Failover::Relist,
                    "trust" => Failover::Trust,
                    _ => return Err(wrong(name, value, "must be relist or trust")),
                };
            }
            "unsafe" => {
                self.unsafe_accepted = match value {
                    "yes" => true,
                    "no" => false,
                    _ => return Err(wrong(name, value, "must be yes or no")),
                };
            }
            "password-file" => self.password_file = Some(value.into()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Reads the password, if the address names a file with it.
    pub(crate) fn password(&self) -> Result<Option<String>, SqlError> {
        let Some(path) = &self.password_file else {
            return Ok(None);
        };
        let text = std::fs::read_to_string(path)
            .map_err(|error| unusable(path.display().to_string(), error))?;
        Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
    }
}

pub(crate) fn wrong(name: &str, value: &str, why: &'static str) -> AddressError {
    AddressError::Parameter {
        name: name.to_owned(),
        value: value.to_owned(),
        why,
    }
}

/// Returns the decoded parameters of `query`, the part of a URL after the question mark, each with its text in the URL.
pub(crate) fn parameters(query: &str) -> impl Iterator<Item = (&str, String, &str)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (name, decoded(value), pair)
    })
}

/// Returns whether a connection to the host `name` stays on this machine.
pub(crate) fn is_local_name(name: &str) -> bool {
    name == "localhost"
        || name
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

pub(crate) fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = (bytes[at] == b'%')
            .then(|| text.get(at + 1..at + 3))
            .flatten()
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        out.push(hex.unwrap_or(bytes[at]));
        at += if hex.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Returns the text of `error` and of its causes. Tests use it to check that no password is disclosed.
#[cfg(test)]
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = format!("{error} {error:?}");
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

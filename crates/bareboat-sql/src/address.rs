//! What addresses of all databases have in common.

use std::path::PathBuf;

/// Why an address cannot be used. Never contains a password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// It is not a URL of a database.
    #[error("the address of the database is not a {scheme}:// URL that can be read")]
    Malformed {
        /// The scheme of the URL.
        scheme: &'static str,
        /// The reason.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A parameter is not known, or has a value that is not known.
    #[error("{name}={value} in the address of the database: {why}")]
    Parameter {
        /// The name of the parameter.
        name: String,
        /// Its value.
        value: String,
        /// What is wrong with it.
        why: &'static str,
    },
}

/// What happens after a standby was promoted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Failover {
    /// Another epoch begins: clients list again, because the standby may lack writes.
    #[default]
    Relist,
    /// History goes on if the last known batch is found, because replication is synchronous.
    Trust,
}

/// How much of a connection is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TlsMode {
    Off,
    /// Encrypted, and not checked against anything.
    Encrypted,
    /// The certificate is of a known authority. Only PostgreSQL's client can leave out the name.
    #[cfg_attr(not(feature = "postgres"), expect(dead_code))]
    VerifyCa,
    /// And names the host.
    VerifyFull,
}

/// The files of certificates. They are read for every connection, so that they can be renewed.
#[derive(Default)]
pub(crate) struct Files {
    pub(crate) root: Option<PathBuf>,
    pub(crate) certificate: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
}

/// The parameters that mean the same for every database.
#[derive(Default)]
pub(crate) struct Choices {
    pub(crate) failover: Failover,
    /// Whether a database that loses writes is accepted.
    pub(crate) unsafe_accepted: bool,
}

impl Choices {
    /// Takes a parameter, if it is one of these.
    pub(crate) fn take(&mut self, name: &str, value: &str) -> Result<bool, AddressError> {
        match name {
            "failover" => {
                self.failover = match value {
                    "relist" => Failover::Relist,
                    "trust" => Failover::Trust,
                    _ => return Err(wrong(name, value, "known are relist and trust")),
                };
            }
            "unsafe" => {
                self.unsafe_accepted = match value {
                    "yes" => true,
                    "no" => false,
                    _ => return Err(wrong(name, value, "known are yes and no")),
                };
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

pub(crate) fn wrong(name: &str, value: &str, why: &'static str) -> AddressError {
    AddressError::Parameter {
        name: name.to_owned(),
        value: value.to_owned(),
        why,
    }
}

/// The parameters after the question mark, decoded, each with its text in the URL.
pub(crate) fn parameters(query: &str) -> impl Iterator<Item = (&str, String, &str)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (name, decoded(value), pair)
    })
}

/// Returns whether a connection to this host stays on this machine.
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

/// The text of an error and of its causes, for tests of what it discloses.
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

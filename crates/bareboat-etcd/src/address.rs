//! Addresses of etcd clusters: `etcd://HOST:PORT,…/PREFIX?tls=…&ca=…&cert=…&key=…&user=…&password-file=…`.

use std::net::IpAddr;
use std::path::PathBuf;

/// The reason why an address cannot be used. Never contains a password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The address is not a URL of an etcd cluster.
    #[error("the address of the store is not of the form etcd://HOST:PORT,HOST:PORT/PREFIX")]
    Malformed,
    /// The address contains a password, which other users of the machine would see in the list of processes.
    #[error(
        "the address of the store contains a password: use user= with password-file=, or with ETCDCTL_PASSWORD in the environment"
    )]
    Password,
    /// The name of a parameter is not known, or its value is not allowed.
    #[error("{name} in the address of the store: {why}")]
    Parameter {
        /// The name of the parameter.
        name: String,
        /// The reason why the parameter is refused.
        why: &'static str,
    },
}

/// The address of a member of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// A host name, or an IP address without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// A parsed address.
#[derive(Debug)]
pub(crate) struct Address {
    /// The members of the cluster; at least one.
    pub(crate) endpoints: Vec<Endpoint>,
    /// The prefix of all keys. Begins and ends with a slash.
    pub(crate) prefix: String,
    pub(crate) tls: bool,
    pub(crate) ca: Option<PathBuf>,
    pub(crate) certificate: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
    pub(crate) user: Option<String>,
    pub(crate) password_file: Option<PathBuf>,
}

const PORT: u16 = 2379;

impl Address {
    pub(crate) fn parse(url: &str) -> Result<Self, AddressError> {
        let rest = url.strip_prefix("etcd://").ok_or(AddressError::Malformed)?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (hosts, prefix) = place.split_once('/').unwrap_or((place, ""));
        if hosts.contains('@') {
            return Err(AddressError::Password);
        }
        let endpoints: Option<Vec<Endpoint>> = hosts.split(',').map(endpoint).collect();
        let endpoints = endpoints.ok_or(AddressError::Malformed)?;
        let prefix = decoded(prefix);
        let prefix = match prefix.trim_matches('/') {
            "" => "/bareboat/".to_owned(),
            inner => format!("/{inner}/"),
        };
        let mut address = Self {
            tls: !endpoints.iter().all(Endpoint::is_local),
            endpoints,
            prefix,
            ca: None,
            certificate: None,
            key: None,
            user: None,
            password_file: None,
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            address.set(name, decoded(value))?;
        }
        if address.certificate.is_some() != address.key.is_some() {
            return Err(wrong("cert", "cert and key must be given together"));
        }
        Ok(address)
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), AddressError> {
        match name {
            "tls" => {
                self.tls = match value.as_str() {
                    "on" => true,
                    "off" => false,
                    _ => return Err(wrong(name, "must be on or off")),
                };
            }
            "ca" => self.ca = Some(value.into()),
            "cert" => self.certificate = Some(value.into()),
            "key" => self.key = Some(value.into()),
            "user" if value.contains(':') => return Err(AddressError::Password),
            "user" => self.user = Some(value),
            "password-file" => self.password_file = Some(value.into()),
            _ => {
                let why = "not a known parameter; use tls, ca, cert, key, user or password-file";
                return Err(wrong(name, why));
            }
        }
        Ok(())
    }
}

fn wrong(name: &str, why: &'static str) -> AddressError {
    AddressError::Parameter {
        name: name.to_owned(),
        why,
    }
}

fn endpoint(text: &str) -> Option<Endpoint> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            (host, port.strip_prefix(':'))
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = match port {
        Some(port) => port.parse().ok()?,
        None => PORT,
    };
    (!host.is_empty()).then(|| Endpoint {
        host: host.to_owned(),
        port,
    })
}

impl Endpoint {
    /// Returns whether a connection to this endpoint stays on this machine.
    fn is_local(&self) -> bool {
        let loopback = |address: IpAddr| address.is_loopback();
        self.host == "localhost" || self.host.parse().is_ok_and(loopback)
    }
}

fn decoded(text: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_and_prefixes_are_read() {
        let address = Address::parse("etcd://a.example:1,b.example,[::1]:3/team/one?ca=%2Fca.pem");
        let address = address.expect("a good address");
        let endpoints: Vec<String> = address.endpoints.iter().map(Endpoint::to_string).collect();
        assert_eq!(endpoints, ["a.example:1", "b.example:2379", "[::1]:3"]);
        assert_eq!(address.prefix, "/team/one/");
        assert_eq!(address.ca, Some("/ca.pem".into()));
        assert!(address.tls);
        let prefix = |url| Address::parse(url).map(|address| address.prefix).ok();
        assert_eq!(prefix("etcd://h"), Some("/bareboat/".to_owned()));
        assert_eq!(prefix("etcd://h/"), Some("/bareboat/".to_owned()));
        assert_eq!(prefix("etcd://h/x/"), Some("/x/".to_owned()));
    }

    #[test]
    fn remote_members_are_reached_by_tls_unless_the_address_says_otherwise() {
        let tls = |url| Address::parse(url).map(|address| address.tls).ok();
        assert_eq!(tls("etcd://127.0.0.1:1,[::1]:2"), Some(false));
        assert_eq!(tls("etcd://localhost"), Some(false));
        assert_eq!(tls("etcd://localhost,db.example"), Some(true));
        assert_eq!(tls("etcd://db.example?tls=off"), Some(false));
        assert_eq!(tls("etcd://127.0.0.1?tls=on"), Some(true));
    }

    #[test]
    fn errors_contain_no_password() {
        let bad = [
            "etcd://root:hunter2@h/x",
            "etcd://h/x?user=root:hunter2",
            "etcd://h/x?password=hunter2",
            "etcd://h/x?tls=hunter2",
            "etcd://h/x?cert=c",
            "etcd://",
            "etcd://h:port",
            "etcd://h,,i",
            "http://h",
        ];
        for url in bad {
            let error = Address::parse(url).expect_err(url);
            let text = format!("{error} {error:?}");
            assert!(!text.contains("hunter2"), "{text}");
        }
    }
}

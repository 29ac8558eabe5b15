//! Addresses of databases: libpq's parameters for TLS and ours, which the client library does not
//! know, are taken out of the URL.

use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// Why an address cannot be used. Never contains a password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// It is not a URL of a database.
    #[error("the address of the database is not a postgres:// URL that can be read")]
    Malformed(#[source] tokio_postgres::Error),
    /// A parameter has a value that is not known.
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
    /// The certificate is of a known authority.
    VerifyCa,
    /// And names the host.
    VerifyFull,
}

/// An address, understood.
pub(crate) struct Address {
    pub(crate) config: Config,
    pub(crate) tls: TlsMode,
    pub(crate) root: Option<PathBuf>,
    pub(crate) certificate: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
    pub(crate) schema: String,
    pub(crate) failover: Failover,
    pub(crate) synchronous_commit: String,
    /// Whether a database that loses writes is accepted.
    pub(crate) unsafe_accepted: bool,
}

impl Address {
    pub(crate) fn parse(url: &str) -> Result<Self, AddressError> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let mut kept = Vec::new();
        let mut ours = Ours::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if !ours.take(name, &decoded(value))? {
                kept.push(pair);
            }
        }
        let rest = match kept.is_empty() {
            true => base.to_owned(),
            false => format!("{base}?{}", kept.join("&")),
        };
        let mut config: Config = rest.parse().map_err(AddressError::Malformed)?;
        if config.get_password().is_none()
            && let Ok(password) = std::env::var("PGPASSWORD")
        {
            config.password(password);
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_secs(5));
        }
        config
            .application_name("bareboat")
            .keepalives_idle(Duration::from_secs(5))
            .keepalives_interval(Duration::from_secs(5))
            .keepalives_retries(3)
            .tcp_user_timeout(Duration::from_secs(15));
        let tls = ours.tls.unwrap_or_else(|| match is_local(&config) {
            true => TlsMode::Off,
            false => TlsMode::VerifyFull,
        });
        config.ssl_mode(match tls {
            TlsMode::Off => tokio_postgres::config::SslMode::Disable,
            _ => tokio_postgres::config::SslMode::Require,
        });
        Ok(Self {
            config,
            tls,
            root: ours.root,
            certificate: ours.certificate,
            key: ours.key,
            schema: ours.schema.unwrap_or_else(|| "bareboat".to_owned()),
            failover: ours.failover,
            synchronous_commit: ours.synchronous_commit.unwrap_or_else(|| "on".to_owned()),
            unsafe_accepted: ours.unsafe_accepted,
        })
    }
}

/// The parameters that are not the client library's.
#[derive(Default)]
struct Ours {
    tls: Option<TlsMode>,
    root: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    schema: Option<String>,
    failover: Failover,
    synchronous_commit: Option<String>,
    unsafe_accepted: bool,
}

impl Ours {
    /// Takes a parameter, if it is ours.
    fn take(&mut self, name: &str, value: &str) -> Result<bool, AddressError> {
        let wrong = |why| AddressError::Parameter {
            name: name.to_owned(),
            value: value.to_owned(),
            why,
        };
        match name {
            "sslmode" => {
                self.tls = Some(match value {
                    "disable" => TlsMode::Off,
                    // There is no fallback to plain text.
                    "prefer" | "require" => TlsMode::Encrypted,
                    "verify-ca" => TlsMode::VerifyCa,
                    "verify-full" => TlsMode::VerifyFull,
                    _ => {
                        return Err(wrong(
                            "known are disable, require, verify-ca and verify-full",
                        ));
                    }
                });
            }
            "sslrootcert" => self.root = Some(value.into()),
            "sslcert" => self.certificate = Some(value.into()),
            "sslkey" => self.key = Some(value.into()),
            "schema" => {
                let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
                if value.is_empty() || value.len() > 40 || !value.chars().all(plain) {
                    return Err(wrong("up to 40 lowercase letters, digits and underscores"));
                }
                self.schema = Some(value.to_owned());
            }
            "failover" => {
                self.failover = match value {
                    "relist" => Failover::Relist,
                    "trust" => Failover::Trust,
                    _ => return Err(wrong("known are relist and trust")),
                };
            }
            "synchronous_commit" => match value {
                "on" | "remote_apply" | "remote_write" => {
                    self.synchronous_commit = Some(value.to_owned());
                }
                _ => {
                    return Err(wrong(
                        "acknowledged writes must be durable: on, remote_apply or remote_write",
                    ));
                }
            },
            "unsafe" => {
                self.unsafe_accepted = match value {
                    "yes" => true,
                    "no" => false,
                    _ => return Err(wrong("known are yes and no")),
                };
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Returns whether the connection stays on this machine.
fn is_local(config: &Config) -> bool {
    let local = |host: &Host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost"
                || name
                    .parse::<std::net::IpAddr>()
                    .is_ok_and(|address| address.is_loopback())
        }
    };
    // An address given beside a name is the one that is used.
    let mut addresses = config.get_hostaddrs().iter();
    config.get_hosts().iter().all(local) && addresses.all(|address| address.is_loopback())
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
    fn remote_hosts_are_verified_unless_the_address_says_otherwise() {
        let mode = |url: &str| Address::parse(url).map(|address| address.tls).ok();
        assert_eq!(mode("postgres://u@db.example/x"), Some(TlsMode::VerifyFull));
        assert_eq!(mode("postgres://u@127.0.0.1/x"), Some(TlsMode::Off));
        let addresses = [
            ("127.0.0.1", TlsMode::Off),
            ("192.0.2.1", TlsMode::VerifyFull),
        ];
        for (address, expected) in addresses {
            let url = format!("postgres://u@localhost/x?hostaddr={address}");
            assert_eq!(mode(&url), Some(expected), "{url}");
        }
        assert_eq!(mode("postgres://u@%2Frun%2Fpg/x"), Some(TlsMode::Off));
        assert_eq!(
            mode("postgres://u@db/x?sslmode=disable"),
            Some(TlsMode::Off)
        );
        assert_eq!(mode("postgres://u@db/x?sslmode=allow"), None);
        assert_eq!(mode("postgres://u@db/x?synchronous_commit=off"), None);
        assert_eq!(mode("postgres://u@db/x?schema=A;drop"), None);
    }

    #[test]
    fn parameters_of_the_client_library_stay() {
        let url = "postgres://u:secret@a:1,b:2/x?schema=s1&target_session_attrs=read-write&sslrootcert=%2Ftmp%2Fca.pem&failover=trust";
        let address = Address::parse(url).expect("a good address");
        assert_eq!(address.schema, "s1");
        assert_eq!(address.failover, Failover::Trust);
        assert_eq!(address.root, Some("/tmp/ca.pem".into()));
        assert_eq!(address.config.get_hosts().len(), 2);
        assert_eq!(
            address.config.get_target_session_attrs(),
            tokio_postgres::config::TargetSessionAttrs::ReadWrite
        );
    }

    #[test]
    fn errors_contain_no_password() {
        let bad = [
            "postgres://u:secret@db/x?nonsense=1",
            "postgres://u:secret@db/x?sslmode=no",
        ];
        for url in bad {
            let error = Address::parse(url).err().expect("a bad address");
            let mut text = error.to_string();
            let mut source = std::error::Error::source(&error);
            while let Some(cause) = source {
                text = format!("{text}: {cause}");
                source = cause.source();
            }
            assert!(!text.contains("secret"), "{text}");
        }
    }
}

//! Addresses of databases. The client library does not know libpq's TLS parameters or the parameters of Bareboat, so
//! they are removed from the URL.

use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::Host;

use crate::address::{AddressError, Choices, Files, TlsMode, is_local_name, parameters, wrong};
use crate::error::SqlError;

/// A parsed address.
pub(crate) struct Address {
    config: Config,
    pub(crate) tls: TlsMode,
    pub(crate) files: Files,
    pub(crate) choices: Choices,
    pub(crate) schema: String,
    pub(crate) synchronous_commit: String,
}

impl Address {
    pub(crate) fn parse(url: &str) -> Result<Self, AddressError> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let mut kept = Vec::new();
        let mut ours = Ours::default();
        for (name, value, pair) in parameters(query) {
            if !ours.take(name, &value)? {
                kept.push(pair);
            }
        }
        let rest = match kept.is_empty() {
            true => base.to_owned(),
            false => format!("{base}?{}", kept.join("&")),
        };
        let config = rest.parse().map_err(|error: tokio_postgres::Error| {
            let (scheme, source) = ("postgres", error.into());
            AddressError::Malformed { scheme, source }
        });
        let mut config: Config = config?;
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
            files: ours.files,
            choices: ours.choices,
            schema: ours.schema.unwrap_or_else(|| "bareboat".to_owned()),
            synchronous_commit: ours.synchronous_commit.unwrap_or_else(|| "on".to_owned()),
        })
    }

    /// Returns the settings of a new connection, with the current password.
    pub(crate) fn config(&self) -> Result<Config, SqlError> {
        let mut config = self.config.clone();
        if let Some(password) = self.choices.password()? {
            config.password(password);
        }
        Ok(config)
    }
}

/// The parameters that the client library does not know.
#[derive(Default)]
struct Ours {
    tls: Option<TlsMode>,
    files: Files,
    choices: Choices,
    schema: Option<String>,
    synchronous_commit: Option<String>,
}

impl Ours {
    /// Stores the parameter `name`; returns false if it is a parameter of the client library.
    fn take(&mut self, name: &str, value: &str) -> Result<bool, AddressError> {
        let wrong = |why| wrong(name, value, why);
        match name {
            "sslmode" => {
                self.tls = Some(match value {
                    "disable" => TlsMode::Off,
                    // There is no fallback to plain text.
                    "prefer" | "require" => TlsMode::Encrypted,
                    "verify-ca" => TlsMode::VerifyCa,
                    "verify-full" => TlsMode::VerifyFull,
                    _ => {
                        return Err(wrong("must be disable, require, verify-ca or verify-full"));
                    }
                });
            }
            "sslrootcert" => self.files.root = Some(value.into()),
            "sslcert" => self.files.certificate = Some(value.into()),
            "sslkey" => self.files.key = Some(value.into()),
            "schema" => {
                let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
                if value.is_empty() || value.len() > 40 || !value.chars().all(plain) {
                    return Err(wrong("up to 40 lowercase letters, digits and underscores"));
                }
                self.schema = Some(value.to_owned());
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
            _ => return self.choices.take(name, value),
        }
        Ok(true)
    }
}

/// Returns whether the connection stays on this machine.
fn is_local(config: &Config) -> bool {
    let local = |host: &Host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => is_local_name(name),
    };
    // If the URL has both an address and a name, the address is used.
    let mut addresses = config.get_hostaddrs().iter();
    config.get_hosts().iter().all(local) && addresses.all(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{Failover, with_causes};

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
        assert_eq!(address.choices.failover, Failover::Trust);
        assert_eq!(address.files.root, Some("/tmp/ca.pem".into()));
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
            let text = with_causes(&error);
            assert!(!text.contains("secret"), "{text}");
        }
    }
}

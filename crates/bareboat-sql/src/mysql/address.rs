//! Addresses `mysql://user@host:3306/database?tls=…`.

use std::time::Duration;

use mysql_async::OptsBuilder;

use crate::address::{
    AddressError, Choices, Files, TlsMode, decoded, is_local_name, parameters, wrong,
};

/// A parsed address.
pub(crate) struct Address {
    pub(crate) options: OptsBuilder,
    pub(crate) tls: TlsMode,
    /// The name that the certificate must contain, if it is not the host.
    pub(crate) tls_name: Option<String>,
    pub(crate) files: Files,
    pub(crate) choices: Choices,
    pub(crate) database: String,
}

impl Address {
    pub(crate) fn parse(url: &str) -> Result<Self, AddressError> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let (_, rest) = base
            .split_once("://")
            .ok_or_else(|| malformed("no host follows the scheme"))?;
        let (authority, database) = rest
            .split_once('/')
            .ok_or_else(|| malformed("no database is named"))?;
        let database = decoded(database);
        if database.is_empty() {
            return Err(malformed("no database is named"));
        }
        let (user, place) = match authority.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, authority),
        };
        let (host, port) = host_and_port(place)?;
        let mut ours = Ours::default();
        for (name, value, _) in parameters(query) {
            ours.take(name, &value)?;
        }
        let (user, password) = match user.map(|user| user.split_once(':').unwrap_or((user, ""))) {
            Some((user, password)) => (Some(decoded(user)), decoded(password)),
            None => (None, String::new()),
        };
        let password = match password.is_empty() {
            true => std::env::var("MYSQL_PWD").ok(),
            false => Some(password),
        };
        let local = ours.socket.is_some() || is_local_name(&host);
        let tls = ours.tls.unwrap_or(match local {
            true => TlsMode::Off,
            false => TlsMode::VerifyFull,
        });
        let options = OptsBuilder::default()
            .ip_or_hostname(host)
            .tcp_port(port)
            .user(user)
            .pass(password)
            .db_name(Some(database.clone()))
            .prefer_socket(ours.socket.is_some())
            .socket(ours.socket)
            .stmt_cache_size(64)
            .tcp_keepalive(Some(Duration::from_secs(5)));
        Ok(Self {
            options,
            tls,
            tls_name: ours.tls_name,
            files: ours.files,
            choices: ours.choices,
            database,
        })
    }
}

fn malformed(why: &'static str) -> AddressError {
    AddressError::Malformed {
        scheme: "mysql",
        source: why.into(),
    }
}

fn host_and_port(place: &str) -> Result<(String, u16), AddressError> {
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest
                .split_once(']')
                .ok_or_else(|| malformed("the address of the host has no end"))?;
            (host, port.strip_prefix(':'))
        }
        None => match place.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        },
    };
    if host.is_empty() || host.contains(',') {
        return Err(malformed("exactly one host must be named"));
    }
    let port = port.map_or(Ok(3306), |port| {
        port.parse()
            .map_err(|_| malformed("the port is not a number"))
    })?;
    Ok((decoded(host), port))
}

#[derive(Default)]
struct Ours {
    tls: Option<TlsMode>,
    tls_name: Option<String>,
    files: Files,
    choices: Choices,
    socket: Option<String>,
}

impl Ours {
    fn take(&mut self, name: &str, value: &str) -> Result<(), AddressError> {
        match name {
            "tls" => {
                self.tls = Some(match value {
                    "off" => TlsMode::Off,
                    "skip-verify" => TlsMode::Encrypted,
                    "verify-identity" => TlsMode::VerifyFull,
                    "verify-ca" => {
                        let instead = "names are always checked: use verify-identity, with tls-name=NAME if the certificate has another one";
                        return Err(wrong(name, value, instead));
                    }
                    _ => {
                        let known = "must be off, skip-verify or verify-identity";
                        return Err(wrong(name, value, known));
                    }
                });
            }
            "tls-name" => self.tls_name = Some(value.to_owned()),
            "ca" => self.files.root = Some(value.into()),
            "cert" => self.files.certificate = Some(value.into()),
            "key" => self.files.key = Some(value.into()),
            "socket" => self.socket = Some(value.to_owned()),
            _ if self.choices.take(name, value)? => {}
            _ => {
                let known = "not a known parameter; use tls, tls-name, ca, cert, key, socket, password-file, failover or unsafe";
                return Err(wrong(name, value, known));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{Failover, with_causes};
    use mysql_async::Opts;

    #[test]
    fn remote_hosts_are_verified_unless_the_address_says_otherwise() {
        let mode = |url: &str| Address::parse(url).map(|address| address.tls).ok();
        assert_eq!(mode("mysql://u@db.example/x"), Some(TlsMode::VerifyFull));
        assert_eq!(mode("mysql://u@127.0.0.1:3307/x"), Some(TlsMode::Off));
        assert_eq!(mode("mysql://u@[::1]:3307/x"), Some(TlsMode::Off));
        assert_eq!(mode("mysql://u@[2001:db8::1]/x"), Some(TlsMode::VerifyFull));
        assert_eq!(
            mode("mysql://u@db/x?socket=/run/db.sock"),
            Some(TlsMode::Off)
        );
        assert_eq!(mode("mysql://u@db/x?tls=off"), Some(TlsMode::Off));
        for bad in [
            "mysql://u@db/x?tls=preferred",
            "mysql://u@db/x?tls=verify-ca",
            "mysql://u@db",
            "mysql://u@db/",
            "mysql://u@a,b/x",
            "mysql://u@db:x/y",
            "mysql://u@db/x?wake=binlog",
            "mysql:db",
        ] {
            assert_eq!(mode(bad), None, "{bad}");
        }
    }

    #[test]
    fn all_parts_are_understood() {
        let url = "mysql://a%40b:s%3Acret@db.example:3307/bare%5Fboat?ca=%2Ftmp%2Fca.pem&failover=trust&unsafe=yes";
        let address = Address::parse(url).expect("a good address");
        assert_eq!(address.files.root, Some("/tmp/ca.pem".into()));
        assert_eq!(address.choices.failover, Failover::Trust);
        assert!(address.choices.unsafe_accepted);
        let options = Opts::from(address.options);
        assert_eq!(options.ip_or_hostname(), "db.example");
        assert_eq!(options.tcp_port(), 3307);
        assert_eq!(options.user(), Some("a@b"));
        assert_eq!(options.pass(), Some("s:cret"));
        assert_eq!(options.db_name(), Some("bare_boat"));
    }

    #[test]
    fn errors_contain_no_password() {
        let bad = [
            "mysql://u:secret@db/x?nonsense=1",
            "mysql://u:secret@db:x/y",
            "mysql://u:secret@db",
        ];
        for url in bad {
            let text = with_causes(&Address::parse(url).err().expect("a bad address"));
            assert!(!text.contains("secret"), "{text}");
        }
    }
}

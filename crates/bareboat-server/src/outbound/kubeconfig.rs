//! Parses a kubeconfig: address, trusted CAs and credentials of a server.
//!
//! The current context is used. Plug-ins and passwords are not supported; certificates are always verified.

use crate::tls::ClientIdentity;
use bareboat_api::Value;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// An error in a kubeconfig.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeconfigError {
    path: PathBuf,
    why: String,
}

impl KubeconfigError {
    pub(super) fn new(path: &Path, why: impl Into<String>) -> KubeconfigError {
        KubeconfigError {
            path: path.to_owned(),
            why: why.into(),
        }
    }
}

impl fmt::Display for KubeconfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        write!(f, "the kubeconfig {path} cannot be used: {}", self.why)
    }
}

impl std::error::Error for KubeconfigError {}

/// The content of a context.
pub(super) struct Access {
    pub(super) server: String,
    /// PEM; empty for the CAs of the system.
    pub(super) authorities: Vec<u8>,
    pub(super) identity: Option<ClientIdentity>,
    pub(super) token: Option<Token>,
}

/// A bearer token.
#[derive(Clone)]
pub(crate) enum Token {
    Text(String),
    /// Read for each call: tokens in files are replaced before they expire.
    File(PathBuf),
}

impl Token {
    pub(crate) async fn read(&self) -> Result<String, String> {
        match self {
            Token::Text(text) => Ok(text.clone()),
            Token::File(path) => match tokio::fs::read_to_string(path).await {
                Ok(text) => Ok(text.trim().to_owned()),
                Err(error) => Err(format!("{} cannot be read: {error}", path.display())),
            },
        }
    }
}

/// Reads the current context of a file.
pub(super) fn read(path: &Path) -> Result<Access, KubeconfigError> {
    File::open(path)
        .and_then(|file| file.access())
        .map_err(|why| KubeconfigError::new(path, why))
}

/// The credentials of a user.
pub(crate) struct UserCredentials {
    pub(crate) identity: Option<ClientIdentity>,
    pub(crate) token: Option<Token>,
}

/// Reads all users of a file, with their names.
pub(crate) fn users(path: &Path) -> Result<Vec<(String, UserCredentials)>, KubeconfigError> {
    File::open(path)
        .and_then(|file| file.users())
        .map_err(|why| KubeconfigError::new(path, why))
}

struct File<'a> {
    value: Value,
    path: &'a Path,
}

impl File<'_> {
    fn open(path: &Path) -> Result<File<'_>, String> {
        let text = fs::read(path).map_err(|error| error.to_string())?;
        let parsed = bareboat_wire::yaml::parse(&text).map_err(|error| error.to_string())?;
        Ok(File {
            value: parsed.value,
            path,
        })
    }

    fn access(&self) -> Result<Access, String> {
        let text =
            |from: &Value, key: &str| from.get(key).and_then(Value::as_str).map(str::to_owned);
        let context = match text(&self.value, "current-context") {
            Some(name) if !name.is_empty() => self.entry("contexts", "context", &name)?,
            _ => return Err("it has no current context".to_owned()),
        };
        let cluster = text(&context, "cluster").unwrap_or_default();
        let cluster = self.entry("clusters", "cluster", &cluster)?;
        let user = match text(&context, "user") {
            Some(name) if !name.is_empty() => self.entry("users", "user", &name)?,
            _ => Value::object(),
        };
        for key in ["insecure-skip-tls-verify", "tls-server-name", "proxy-url"] {
            let set = cluster.get(key).is_some_and(|value| {
                !matches!(value, Value::Null | Value::Bool(false)) && value.as_str() != Some("")
            });
            if set {
                return Err(format!("{key} is not supported"));
            }
        }
        let UserCredentials { identity, token } = self.user(&user)?;
        let authorities = self.data(
            &cluster,
            "certificate-authority-data",
            "certificate-authority",
        )?;
        Ok(Access {
            server: text(&cluster, "server").ok_or("the cluster has no server")?,
            authorities: authorities.unwrap_or_default(),
            identity,
            token,
        })
    }

    fn users(&self) -> Result<Vec<(String, UserCredentials)>, String> {
        let entries = self.value.get("users").and_then(Value::as_array);
        let entries = entries.unwrap_or(&[]).iter();
        entries
            .map(|entry| {
                let name = entry.get("name").and_then(Value::as_str);
                let name = name.ok_or("a user has no name")?;
                let user = entry.get("user").unwrap_or(&Value::Null);
                Ok((name.to_owned(), self.user(user)?))
            })
            .collect()
    }

    fn user(&self, user: &Value) -> Result<UserCredentials, String> {
        for key in ["exec", "auth-provider", "username", "as"] {
            if user.get(key).is_some_and(|value| !value.is_null()) {
                return Err(format!(
                    "the user logs in with {key}, which is not supported; use a client certificate or a token"
                ));
            }
        }
        let text = |key: &str| user.get(key).and_then(Value::as_str).map(str::to_owned);
        Ok(UserCredentials {
            identity: self.identity(user)?,
            token: match (text("token"), text("tokenFile")) {
                (_, Some(file)) => Some(Token::File(self.beside(&file))),
                (Some(token), None) => Some(Token::Text(token)),
                (None, None) => None,
            },
        })
    }

    fn identity(&self, user: &Value) -> Result<Option<ClientIdentity>, String> {
        let chain = self.data(user, "client-certificate-data", "client-certificate")?;
        let key = self.data(user, "client-key-data", "client-key")?;
        let (Some(chain), Some(key)) = (&chain, &key) else {
            return match chain.is_some() || key.is_some() {
                true => Err("a client certificate needs its key".to_owned()),
                false => Ok(None),
            };
        };
        let pem = |bytes| std::str::from_utf8(bytes).map_err(|_| "a certificate is not PEM");
        ClientIdentity::from_pem(pem(chain)?, pem(key)?)
            .map(Some)
            .map_err(|error| error.to_string())
    }

    /// Returns an entry of one of the lists.
    fn entry(&self, list: &str, key: &str, name: &str) -> Result<Value, String> {
        let entries = self.value.get(list).and_then(Value::as_array);
        let named = |entry: &&Value| entry.get("name").and_then(Value::as_str) == Some(name);
        let found = entries.unwrap_or(&[]).iter().find(named);
        let found = found.and_then(|entry| entry.get(key));
        found
            .cloned()
            .ok_or_else(|| format!("it has no {key} {name:?}"))
    }

    /// Returns the content of a field, or of the file that another field names.
    fn data(&self, from: &Value, data: &str, file: &str) -> Result<Option<Vec<u8>>, String> {
        if let Some(text) = from.get(data).and_then(Value::as_str) {
            let bytes = BASE64_STANDARD.decode(text.trim());
            return bytes.map(Some).map_err(|_| format!("{data} is not base64"));
        }
        let Some(file) = from.get(file).and_then(Value::as_str) else {
            return Ok(None);
        };
        let path = self.beside(file);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) => Err(format!("{} cannot be read: {error}", path.display())),
        }
    }

    /// Resolves a path relative to the kubeconfig.
    fn beside(&self, file: &str) -> PathBuf {
        self.path.parent().unwrap_or(Path::new(".")).join(file)
    }
}

//! Credentials: client certificates of the data directory's CA, tokens of service accounts; and `bareboat kubeconfig
//! credential`, which prints one in the form that clients expect of a credential plug-in.

use crate::certificates;
use crate::client::Client;
use anyhow::{Context as _, Result, bail};
use bareboat::api::{Value, value};
use bareboat_certificates::Subject;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The shortest lifetime of a token that servers accept.
const SHORTEST_TOKEN: Duration = Duration::from_secs(600);

/// The identity in a kubeconfig.
pub(super) enum Identity {
    User(Subject),
    Account { namespace: String, name: String },
}

impl Identity {
    /// Returns the name of the user in the kubeconfig.
    pub(super) fn name(&self) -> String {
        match self {
            Identity::User(subject) => subject.common_name.clone(),
            Identity::Account { namespace, name } => {
                format!("system:serviceaccount:{namespace}:{name}")
            }
        }
    }
}

/// The credential of a user: a token, or a certificate with its key.
pub(super) enum Secret {
    Certificate { certificate: String, key: String },
    Token(String),
}

/// Flags that say who a credential is for.
#[derive(clap::Args, Debug)]
pub(crate) struct IdentityFlags {
    /// The name of the user
    #[arg(
        value_name = "NAME",
        required_unless_present = "service_account",
        conflicts_with = "service_account"
    )]
    name: Option<String>,

    /// A group of the user (repeatable)
    #[arg(long, value_name = "GROUP", conflicts_with = "service_account")]
    group: Vec<String>,

    /// A service account instead of a user; the server must run
    #[arg(long, value_name = "NAMESPACE/NAME")]
    service_account: Option<String>,

    /// How long the credential is good
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "24h",
        value_parser = crate::settings::duration
    )]
    expires: Duration,

    /// The data directory of the server
    #[arg(
        long,
        value_name = "DIR",
        env = "BAREBOAT_DATA_DIR",
        default_value = "./bareboat-data"
    )]
    data_dir: PathBuf,

    /// The kubeconfig that names the server and asks for tokens [default: admin.kubeconfig of the data directory]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

impl IdentityFlags {
    /// The kubeconfig of the administrator.
    pub(super) fn kubeconfig(&self) -> PathBuf {
        let own = || self.data_dir.join("admin.kubeconfig");
        self.kubeconfig.clone().unwrap_or_else(own)
    }

    pub(super) fn identity(&self) -> Result<Identity> {
        if self.expires.is_zero() {
            bail!("--expires must be greater than zero");
        }
        if let Some(account) = &self.service_account {
            let (namespace, name) = account.split_once('/').with_context(|| {
                format!("--service-account {account:?} is not of the form NAMESPACE/NAME")
            })?;
            let plain = |part: &str| {
                !part.is_empty()
                    && part
                        .chars()
                        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.'))
            };
            if !plain(namespace) || !plain(name) {
                bail!("--service-account {account:?} is not of the form NAMESPACE/NAME");
            }
            return Ok(Identity::Account {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            });
        }
        let name = self.name.clone().unwrap_or_default();
        if name.is_empty() || self.group.iter().any(String::is_empty) {
            bail!("the name of a user or a group must not be empty");
        }
        Ok(Identity::User(Subject {
            common_name: name,
            organizations: self.group.clone(),
        }))
    }

    /// Returns the same flags for another run of this program, from any directory.
    pub(super) fn arguments(&self) -> Result<Vec<String>> {
        let absolute = |path: &Path| {
            let path = std::path::absolute(path)
                .with_context(|| format!("{} has no absolute path", path.display()))?;
            Ok::<_, anyhow::Error>(path.display().to_string())
        };
        let mut all = vec![
            format!("--data-dir={}", absolute(&self.data_dir)?),
            format!("--expires={}s", self.expires.as_secs()),
        ];
        if let Some(path) = &self.kubeconfig {
            all.push(format!("--kubeconfig={}", absolute(path)?));
        }
        if let Some(account) = &self.service_account {
            all.push(format!("--service-account={account}"));
        }
        all.extend(self.group.iter().map(|group| format!("--group={group}")));
        if let Some(name) = &self.name {
            all.extend(["--".to_owned(), name.clone()]);
        }
        Ok(all)
    }

    /// Issues a credential; returns it with its expiry in seconds since 1970.
    pub(super) fn issue(
        &self,
        identity: &Identity,
        kubeconfig: &Path,
    ) -> Result<(Secret, Option<i64>)> {
        match identity {
            Identity::User(subject) => {
                let seconds = i64::try_from(self.expires.as_secs()).unwrap_or(i64::MAX / 2);
                let seconds = seconds.min(i64::MAX / 2);
                let (certificate, key) =
                    certificates::user(&self.data_dir, subject.clone(), seconds)?;
                let ends = certificates::ends(&certificate);
                Ok((Secret::Certificate { certificate, key }, ends))
            }
            Identity::Account { namespace, name } => {
                if self.expires < SHORTEST_TOKEN {
                    bail!("--expires must be at least 10m for a service account");
                }
                let client = Client::new(kubeconfig, None, None)?;
                let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
                let request = value!({
                    "apiVersion": "authentication.k8s.io/v1",
                    "kind": "TokenRequest",
                    "spec": {"expirationSeconds": (self.expires.as_secs() as i64)},
                });
                let answer = crate::client::block_on(client.create(&path, &request))?
                    .with_context(|| {
                        format!("there is no token for the service account {namespace}/{name}")
                    })?;
                let text = |member: &str| {
                    let found = answer.at(&["status", member]).and_then(Value::as_str);
                    found
                        .with_context(|| format!("the answer of the server has no status.{member}"))
                };
                let ends: jiff::Timestamp = text("expirationTimestamp")?
                    .parse()
                    .context("the answer of the server has no time of expiry")?;
                Ok((
                    Secret::Token(text("token")?.to_owned()),
                    Some(ends.as_second()),
                ))
            }
        }
    }
}

/// Flags of `bareboat kubeconfig credential`.
#[derive(clap::Args, Debug)]
pub(crate) struct CredentialFlags {
    #[command(flatten)]
    identity: IdentityFlags,
}

/// Prints a credential as an ExecCredential.
pub(crate) fn credential(flags: &CredentialFlags) -> Result<()> {
    let identity = flags.identity.identity()?;
    let (secret, ends) = flags
        .identity
        .issue(&identity, &flags.identity.kubeconfig())?;
    let mut status = match secret {
        Secret::Certificate { certificate, key } => value!({
            "clientCertificateData": (certificate),
            "clientKeyData": (key),
        }),
        Secret::Token(token) => value!({"token": (token)}),
    };
    if let Some(time) = ends.and_then(|ends| jiff::Timestamp::from_second(ends).ok()) {
        status
            .make_object()
            .insert("expirationTimestamp", Value::from(time.to_string()));
    }
    let answer = value!({
        "apiVersion": (wanted_version()),
        "kind": "ExecCredential",
        "status": (status),
    });
    let mut text = answer.to_json();
    text.push(b'\n');
    crate::print(&text)
}

/// Returns the version the client asks for in its environment.
fn wanted_version() -> String {
    const NEWEST: &str = "client.authentication.k8s.io/v1";
    let info = std::env::var("KUBERNETES_EXEC_INFO").unwrap_or_default();
    let asked = bareboat_wire::json::parse(info.as_bytes()).ok();
    let asked = asked.and_then(|parsed| Some(parsed.value.get("apiVersion")?.as_str()?.to_owned()));
    asked
        .filter(|version| version == "client.authentication.k8s.io/v1beta1")
        .unwrap_or_else(|| NEWEST.to_owned())
}

//! `bareboat kubeconfig create`: a kubeconfig for a user or a service account.

use super::credential::{Identity, IdentityFlags, Secret};
use super::of_user;
use crate::certificates::write_private;
use crate::client::Kubeconfig;
use anyhow::{Context as _, Result};
use bareboat::api::{Value, value};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::path::PathBuf;

/// The name by which kubectl knows credentials of a program.
const EXEC: &str = "client.authentication.k8s.io/v1";

/// How a kubeconfig is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum KubeconfigFormat {
    /// As people write it
    Yaml,
    /// For programs; kubectl reads it as well
    Json,
}

/// Flags of `bareboat kubeconfig create`.
#[derive(clap::Args, Debug)]
pub(crate) struct CreateFlags {
    #[command(flatten)]
    pub(crate) identity: IdentityFlags,

    /// Do not put a credential into the kubeconfig; let clients run this program for one whenever the last has expired
    #[arg(long)]
    pub(crate) exec: bool,

    /// The server to name in the kubeconfig [default: that of the admin kubeconfig]
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<String>,

    /// Write the kubeconfig to this file, for its owner alone [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,

    /// How to print it
    #[arg(long, short, value_enum, default_value = "yaml", value_name = "FORMAT")]
    pub(crate) output: KubeconfigFormat,
}

/// Makes a kubeconfig.
pub(crate) fn create(flags: &CreateFlags) -> Result<()> {
    let identity = flags.identity.identity()?;
    let path = flags.identity.kubeconfig();
    let admin = Kubeconfig::read(&path)
        .with_context(|| "the kubeconfig of the administrator names the server; start the server once, or name its data directory with --data-dir")?;
    let context = admin.context(None)?;
    let cluster = context.get("cluster").and_then(Value::as_str).unwrap_or("");
    let mut cluster = admin.entry("clusters", "cluster", cluster)?;
    if let Some(server) = &flags.server {
        cluster
            .make_object()
            .insert("server", Value::from(server.as_str()));
    }
    let user = match flags.exec {
        true => exec(&flags.identity)?,
        false => {
            let (secret, _) = flags.identity.issue(&identity, &path)?;
            embedded(&secret)
        }
    };
    let namespace = match &identity {
        Identity::Account { namespace, .. } => Some(namespace.as_str()),
        Identity::User(_) => None,
    };
    let config = of_user(&identity.name(), cluster, user, namespace);
    let text = match flags.output {
        KubeconfigFormat::Yaml => bareboat_wire::yaml::print(&config),
        KubeconfigFormat::Json => {
            let mut text = config.to_json();
            text.push(b'\n');
            text
        }
    };
    match &flags.save {
        None => crate::print(&text),
        Some(path) => {
            let text = String::from_utf8(text).context("the kubeconfig is not UTF-8")?;
            write_private(path, &text)?;
            crate::print(format!("{}\n", path.display()).as_bytes())
        }
    }
}

fn embedded(secret: &Secret) -> Value {
    match secret {
        Secret::Certificate { certificate, key } => value!({
            "client-certificate-data": (STANDARD.encode(certificate)),
            "client-key-data": (STANDARD.encode(key)),
        }),
        Secret::Token(token) => value!({"token": (token.as_str())}),
    }
}

/// A user entry that runs this program for credentials.
fn exec(identity: &IdentityFlags) -> Result<Value> {
    let program = std::env::current_exe().context("the path of this program is unknown")?;
    let mut arguments = vec!["kubeconfig".to_owned(), "credential".to_owned()];
    arguments.extend(identity.arguments()?);
    Ok(value!({
        "exec": {
            "apiVersion": (EXEC),
            "command": (program.display().to_string()),
            "args": (arguments.into_iter().map(Value::from).collect::<Value>()),
            "interactiveMode": "Never",
            "provideClusterInfo": false,
        },
    }))
}

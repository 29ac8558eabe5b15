//! Kubeconfigs: the administrator's, which the server writes, and those that `bareboat kubeconfig create` makes.

mod create;
mod credential;

pub(crate) use create::{CreateFlags, create};
pub(crate) use credential::{CredentialFlags, credential};

use crate::certificates::{Certificates, names, write_private};
use anyhow::{Context as _, Result, bail};
use bareboat::api::{Value, value};
use bareboat_certificates::keys::portable;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::net::SocketAddr;
use std::path::Path;

/// Writes the kubeconfig unless it exists. A failure is only logged: the server runs without it.
pub(crate) fn save(path: &Path, text: &str) {
    if std::fs::read_to_string(path).is_ok_and(|found| found == text) {
        return;
    }
    if let Err(error) = write_private(path, text) {
        tracing::warn!(error = %format!("{error:#}"), "the admin kubeconfig could not be written");
    }
}

/// Returns a kubeconfig for the administrator of a server with this address and serving certificate.
pub(crate) fn admin(address: SocketAddr, served: &str, certificates: &Certificates) -> String {
    let encode = |text: &str| STANDARD.encode(text);
    // A certificate from outside is trusted as it is, and may not cover the address.
    let (trusted, name) = match served == certificates.server.0 {
        true => (certificates.ca.clone(), None),
        false => (
            format!("{}\n{served}", certificates.ca),
            other_name(served, address),
        ),
    };
    let name = match name {
        Some(name) => format!("    tls-server-name: {name}\n"),
        None => String::new(),
    };
    format!(
        "apiVersion: v1\n\
         kind: Config\n\
         current-context: bareboat\n\
         clusters:\n\
         - name: bareboat\n  \
           cluster:\n    \
             server: https://{address}\n    \
             certificate-authority-data: {}\n\
         {name}\
         contexts:\n\
         - name: bareboat\n  \
           context:\n    \
             cluster: bareboat\n    \
             user: admin\n\
         users:\n\
         - name: admin\n  \
           user:\n    \
             client-certificate-data: {}\n    \
             client-key-data: {}\n",
        encode(&trusted),
        encode(&certificates.admin.0),
        encode(&portable(&certificates.admin.1)),
    )
}

/// Puts another certificate and key of the administrator into the kubeconfig the server wrote. Without one there is
/// nothing to do: the server writes it when it starts.
pub(crate) fn replace_admin(path: &Path, certificate: &str, key: &str) -> Result<()> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return Err(error).with_context(|| format!("{} cannot be read", path.display()));
        }
    };
    let mut replaced = 0;
    let mut out = String::new();
    for line in text.lines() {
        let new = [
            ("client-certificate-data: ", STANDARD.encode(certificate)),
            ("client-key-data: ", STANDARD.encode(portable(key))),
        ]
        .into_iter()
        .find(|(name, _)| line.trim_start().starts_with(name));
        match new {
            Some((name, data)) => {
                replaced += 1;
                let indent = &line[..line.len() - line.trim_start().len()];
                out.push_str(&format!("{indent}{name}{data}\n"));
            }
            None => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    if replaced != 2 {
        bail!(
            "{} is not as the server wrote it; the new certificate is in certificates/admin.crt",
            path.display()
        );
    }
    write_private(path, &out)
}

/// A kubeconfig with one user of one cluster.
fn of_user(name: &str, cluster: Value, user: Value, namespace: Option<&str>) -> Value {
    let mut context = value!({"cluster": "bareboat", "user": (name)});
    if let Some(namespace) = namespace {
        context
            .make_object()
            .insert("namespace", Value::from(namespace));
    }
    value!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "bareboat",
        "clusters": [{"name": "bareboat", "cluster": (cluster)}],
        "contexts": [{"name": "bareboat", "context": (context)}],
        "users": [{"name": (name), "user": (user)}],
    })
}

/// Returns a name to verify if a certificate does not cover the address.
fn other_name(certificate: &str, address: SocketAddr) -> Option<String> {
    let covered = names(certificate);
    if covered.contains(&address.ip().to_string()) {
        return None;
    }
    // A wildcard cannot be used as a name.
    covered.into_iter().find(|name| !name.starts_with('*'))
}

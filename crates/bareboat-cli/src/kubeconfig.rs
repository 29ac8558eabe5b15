//! The administrator's kubeconfig: its text, and when it is written.

use crate::certificates::{Certificates, names, write_private};
use crate::keys;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::net::SocketAddr;
use std::path::Path;

/// Writes the kubeconfig unless it is there already. Failure is a warning: the server runs as well without it.
pub(crate) fn save(path: &Path, text: &str) {
    if std::fs::read_to_string(path).is_ok_and(|found| found == text) {
        return;
    }
    if let Err(error) = write_private(path, text) {
        tracing::warn!(error = %format!("{error:#}"), "the admin kubeconfig could not be written");
    }
}

/// The text of a kubeconfig for the administrator of a server at an address that serves with a
/// certificate.
pub(crate) fn admin(address: SocketAddr, served: &str, certificates: &Certificates) -> String {
    let encode = |text: &str| STANDARD.encode(text);
    // A certificate from elsewhere is trusted as it is, and may not know the address it is served on.
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
        encode(&keys::portable(&certificates.admin.1)),
    )
}

/// The name to ask for when a certificate is not good for the address.
fn other_name(certificate: &str, address: SocketAddr) -> Option<String> {
    let covered = names(certificate);
    if covered.contains(&address.ip().to_string()) {
        return None;
    }
    // What may stand for many names is none to ask for.
    covered.into_iter().find(|name| !name.starts_with('*'))
}

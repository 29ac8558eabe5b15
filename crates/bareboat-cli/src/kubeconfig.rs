//! The administrator's kubeconfig.

use crate::certificates::{Certificates, names};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::net::SocketAddr;

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
        encode(&certificates.admin.1),
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

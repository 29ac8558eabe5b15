//! The administrator's kubeconfig.

use crate::certificates::Certificates;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The text of a kubeconfig for the administrator of a server at an address.
pub(crate) fn admin(server: &str, certificates: &Certificates) -> String {
    let encode = |text: &str| STANDARD.encode(text);
    format!(
        "apiVersion: v1\n\
         kind: Config\n\
         current-context: bareboat\n\
         clusters:\n\
         - name: bareboat\n  \
           cluster:\n    \
             server: {server}\n    \
             certificate-authority-data: {}\n\
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
        encode(&certificates.ca),
        encode(&certificates.admin.0),
        encode(&certificates.admin.1),
    )
}

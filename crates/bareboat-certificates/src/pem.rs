//! PEM: text around DER.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls_pki_types::pem::{PemObject as _, SectionKind};

/// Returns a PEM block with this label.
pub fn encode(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut pem = format!("-----BEGIN {label}-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, behind) = rest.split_at(rest.len().min(64));
        pem.push_str(line);
        pem.push('\n');
        rest = behind;
    }
    pem.push_str(&format!("-----END {label}-----\n"));
    pem
}

/// Returns the certificates of a PEM text in DER, in order, up to the first section that is not PEM.
pub fn certificates(text: &str) -> Vec<Vec<u8>> {
    <(SectionKind, Vec<u8>)>::pem_slice_iter(text.as_bytes())
        .map_while(Result::ok)
        .filter(|(kind, _)| *kind == SectionKind::Certificate)
        .map(|(_, der)| der)
        .collect()
}

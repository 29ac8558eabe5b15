//! The group `certificates.k8s.io`.

use super::build::cluster;
use crate::{columns, defaults, strategies};
use bareboat_api::Kind;
use bareboat_api::kind::Verb;

pub(super) fn kinds() -> Vec<Kind> {
    vec![
        cluster(
            "certificates.k8s.io",
            "certificatesigningrequests",
            "CertificateSigningRequest",
        )
        .version("v1", defaults::none)
        .short(&["csr"])
        .part("approval", &[Verb::Get, Verb::Patch, Verb::Update])
        .status()
        .columns(columns::signing_requests())
        .selectable(&["spec.signerName"])
        .rules(strategies::signing_request())
        .done(),
    ]
}

//! The group `certificates.k8s.io`.

use super::build::cluster;
use crate::{columns, defaults, strategies};
use bareboat_api::Kind;
use bareboat_api::kind::{Fields, Verb};

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
        .resets(&[
            Fields {
                subresource: "",
                paths: &[&["spec"]],
            },
            Fields {
                subresource: "approval",
                paths: &[&["spec"], &["status", "certificate"]],
            },
        ])
        .unowned(&[Fields {
            subresource: "status",
            paths: &[&["status", "conditions"]],
        }])
        .columns(columns::signing_requests())
        .selectable(&["spec.signerName"])
        .rules(strategies::signing_request())
        .done(),
    ]
}

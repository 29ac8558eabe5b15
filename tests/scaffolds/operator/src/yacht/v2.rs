//! Version v2 of Yacht. The server converts between versions by changing `apiVersion` alone; fields that another
//! version lacks are dropped there. `docs/conversion.md` of Bareboat shows conversion by expressions.

use super::YachtStatus;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a Yacht should be.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "fleet.example.org",
    version = "v2",
    kind = "Yacht",
    plural = "yachts",
    namespaced,
    status = "YachtStatus",
    scale(
        spec_replicas_path = ".spec.times",
        status_replicas_path = ".status.times"
    ),
    doc = "A Yacht keeps a ConfigMap with its message.",
    printcolumn(name = "Message", type_ = "string", json_path = ".spec.message"),
    printcolumn(name = "Ready", type_ = "boolean", json_path = ".status.ready"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct YachtSpec {
    /// The text for the ConfigMap.
    #[schemars(length(min = 1, max = 1000))]
    pub message: String,
    /// How often the text is repeated.
    #[serde(default = "super::once")]
    #[schemars(range(min = 1, max = 100))]
    pub times: u8,
}

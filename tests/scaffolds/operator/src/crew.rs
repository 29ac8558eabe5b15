//! The kind Crew: its fields, defaults, rules and columns. The definition is made from it.

pub mod reconcile;
pub mod webhook;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::crd::merge_crds;
use kube::{CustomResource, CustomResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a Crew should be.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "fleet.example.org",
    version = "v1",
    kind = "Crew",
    plural = "crews",
    namespaced,
    status = "CrewStatus",
    doc = "A Crew keeps a ConfigMap with its message.",
    printcolumn(name = "Message", type_ = "string", json_path = ".spec.message"),
    printcolumn(name = "Ready", type_ = "boolean", json_path = ".status.ready"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct CrewSpec {
    /// The text for the ConfigMap.
    #[schemars(length(min = 1, max = 1000))]
    pub message: String,
    /// How often the text is repeated.
    #[serde(default = "once")]
    #[schemars(range(min = 1, max = 100))]
    pub times: u8,
}

fn once() -> u8 {
    1
}

/// What was observed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CrewStatus {
    /// Whether the ConfigMap is as it should be.
    pub ready: bool,
    /// The generation of the spec that this is about.
    pub observed_generation: i64,
}

/// The definition, with all versions; the first one is stored.
pub fn definition() -> CustomResourceDefinition {
    let versions = vec![Crew::crd()];
    merge_crds(versions, "v1").expect("the versions are of one kind")
}

//! The kind: a struct from which the definition is derived, so there is no YAML to maintain.

#![allow(
    clippy::duplicated_attributes,
    reason = "two columns may well be of one type"
)]

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A request for a Deployment of nginx.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "samplecontroller.k8s.io",
    version = "v1alpha1",
    kind = "Foo",
    namespaced,
    status = "FooStatus",
    doc = "Foo keeps a Deployment of nginx.",
    // Groups under k8s.io are protected: a definition must name its API approval.
    annotation("api-approved.kubernetes.io", "unapproved, experimental-only"),
    printcolumn(name = "Deployment", type_ = "string", json_path = ".spec.deploymentName"),
    printcolumn(name = "Replicas", type_ = "integer", json_path = ".spec.replicas"),
    printcolumn(name = "Available", type_ = "integer", json_path = ".status.availableReplicas"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FooSpec {
    /// The name of the Deployment.
    #[schemars(length(min = 1))]
    pub(crate) deployment_name: String,
    /// The desired number of pods; if absent, the Deployment's default applies.
    #[schemars(range(min = 1, max = 10))]
    pub(crate) replicas: Option<i32>,
}

/// The observed state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FooStatus {
    /// The number of available pods of the Deployment.
    pub(crate) available_replicas: i32,
}

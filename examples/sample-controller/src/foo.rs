//! The kind: a struct, from which the definition is derived. No YAML to keep in step with it.

#![allow(
    clippy::duplicated_attributes,
    reason = "two columns may well be of one type"
)]

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A wish for a Deployment of nginx.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "samplecontroller.k8s.io",
    version = "v1alpha1",
    kind = "Foo",
    namespaced,
    status = "FooStatus",
    doc = "Foo keeps a Deployment of nginx.",
    // Groups under k8s.io are protected: whoever defines a kind there says what gives them the right.
    annotation("api-approved.kubernetes.io", "unapproved, experimental-only"),
    printcolumn(name = "Deployment", type_ = "string", json_path = ".spec.deploymentName"),
    printcolumn(name = "Replicas", type_ = "integer", json_path = ".spec.replicas"),
    printcolumn(name = "Available", type_ = "integer", json_path = ".status.availableReplicas"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FooSpec {
    /// What the Deployment is called.
    #[schemars(length(min = 1))]
    pub(crate) deployment_name: String,
    /// How many pods it should have; left to the Deployment when not given.
    #[schemars(range(min = 1, max = 10))]
    pub(crate) replicas: Option<i32>,
}

/// What became of the wish.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FooStatus {
    /// How many pods of the Deployment can be used.
    pub(crate) available_replicas: i32,
}

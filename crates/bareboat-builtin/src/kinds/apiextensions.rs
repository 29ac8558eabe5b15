//! The group `apiextensions.k8s.io`.
//!
//! The server supplies the strategy; `bareboat-schema` interprets definitions.

use super::build::cluster;
use crate::defaults;
use bareboat_api::Kind;

pub(super) fn kinds() -> Vec<Kind> {
    vec![
        cluster(
            "apiextensions.k8s.io",
            "customresourcedefinitions",
            "CustomResourceDefinition",
        )
        .version("v1", defaults::custom_resource_definition)
        .short(&["crd", "crds"])
        .categories(&["api-extensions"])
        .status()
        .generation()
        .conditional_update()
        .keeps_empty_lists()
        .done(),
    ]
}

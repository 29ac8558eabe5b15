//! The group `apiextensions.k8s.io`.
//!
//! What a definition means for the kinds that are served is the server's business.

use super::build::cluster;
use crate::{defaults, strategies};
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
        .rules(strategies::custom_resource_definition())
        .done(),
    ]
}

//! The group `apiregistration.k8s.io`.

use super::build::cluster;
use crate::{columns, defaults, strategies};
use bareboat_api::Kind;
use bareboat_api::kind::NameRule;

pub(super) fn kinds() -> Vec<Kind> {
    vec![
        cluster("apiregistration.k8s.io", "apiservices", "APIService")
            .version("v1", defaults::api_service)
            .categories(&["api-extensions"])
            .status()
            .status_alone()
            .columns(columns::api_services())
            .conditional_update()
            .keeps_empty_lists()
            // The name of the core group's APIService ends in a dot.
            .names_are(NameRule::PathSegment)
            .rules(strategies::api_service())
            .done(),
    ]
}

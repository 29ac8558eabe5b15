//! The group `resource.k8s.io`: devices and claims on them.

use super::build::{cluster, namespaced};
use crate::{columns, defaults, strategies};
use bareboat_api::Kind;
use bareboat_api::kind::UnknownField;

const GROUP: &str = "resource.k8s.io";

pub(super) fn kinds() -> Vec<Kind> {
    vec![
        cluster(GROUP, "deviceclasses", "DeviceClass")
            .version("v1", defaults::none)
            .columns(columns::only_age())
            .generation()
            .delete_returns_object()
            .rules(strategies::device_class())
            .done(),
        namespaced(GROUP, "resourceclaims", "ResourceClaim")
            .version("v1", defaults::resource_claim)
            .status()
            .status_alone()
            .columns(columns::resource_claims())
            .delete_returns_object()
            .rules(strategies::resource_claim())
            .done(),
        namespaced(GROUP, "resourceclaimtemplates", "ResourceClaimTemplate")
            .version("v1", defaults::resource_claim_template)
            .columns(columns::only_age())
            .delete_returns_object()
            .rules(strategies::resource_claim_template())
            .done(),
        cluster(GROUP, "resourceslices", "ResourceSlice")
            .version("v1", defaults::none)
            .columns(columns::resource_slices())
            .selectable(&["spec.nodeName", "spec.driver"])
            .unknown_field(UnknownField::OfType)
            .generation()
            .delete_returns_object()
            .rules(strategies::resource_slice())
            .done(),
    ]
}

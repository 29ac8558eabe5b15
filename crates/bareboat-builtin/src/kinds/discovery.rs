//! The group `discovery.k8s.io`.

use super::build::namespaced;
use crate::{columns, defaults, strategies};
use bareboat_api::Kind;

pub(super) fn kinds() -> Vec<Kind> {
    vec![
        namespaced("discovery.k8s.io", "endpointslices", "EndpointSlice")
            .version("v1", defaults::endpoint_slice)
            .columns(columns::endpoint_slices())
            .generation_with(&["labels"])
            .rules(strategies::endpoint_slice())
            .done(),
    ]
}

//! The group `scheduling.k8s.io`.

use super::build::cluster;
use crate::{columns, defaults, strategies};
use bareboat_api::Kind;

pub(super) fn kinds() -> Vec<Kind> {
    vec![
        cluster("scheduling.k8s.io", "priorityclasses", "PriorityClass")
            .version("v1", defaults::priority_class)
            .short(&["pc"])
            .columns(columns::priority_classes())
            .rules(strategies::priority_class())
            .done(),
    ]
}

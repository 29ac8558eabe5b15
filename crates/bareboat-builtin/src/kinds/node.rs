//! The group `node.k8s.io`.

use super::build::cluster;
use crate::{columns, defaults, strategies};
use bareboat_api::Kind;

pub(super) fn kinds() -> Vec<Kind> {
    vec![
        cluster("node.k8s.io", "runtimeclasses", "RuntimeClass")
            .version("v1", defaults::none)
            .columns(columns::runtime_classes())
            .create_on_update()
            .conditional_update()
            .rules(strategies::runtime_class())
            .done(),
    ]
}

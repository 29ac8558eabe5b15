//! The group `flowcontrol.apiserver.k8s.io`.

use super::build::cluster;
use crate::{columns, defaults, strategies};
use bareboat_api::Kind;

const GROUP: &str = "flowcontrol.apiserver.k8s.io";

pub(super) fn kinds() -> Vec<Kind> {
    vec![
        cluster(GROUP, "flowschemas", "FlowSchema")
            .version("v1", defaults::flow_schema)
            .status()
            .status_alone()
            .columns(columns::flow_schemas())
            .generation()
            .rules(strategies::flow_schema())
            .done(),
        cluster(
            GROUP,
            "prioritylevelconfigurations",
            "PriorityLevelConfiguration",
        )
        .version("v1", defaults::priority_level)
        .status()
        .status_alone()
        .columns(columns::priority_levels())
        .generation()
        .rules(strategies::priority_level())
        .done(),
    ]
}

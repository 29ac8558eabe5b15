//! The group `apps`.

use super::build::namespaced;
use crate::{columns, defaults, strategies};
use bareboat_api::Kind;
use bareboat_api::kind::{Fields, NameRule};

const GROUP: &str = "apps";

pub(super) fn kinds() -> Vec<Kind> {
    vec![
        namespaced(GROUP, "deployments", "Deployment")
            .version("v1", defaults::deployment)
            .short(&["deploy"])
            .categories(&["all"])
            .scale(".spec.selector")
            .status()
            .resets(&[Fields {
                subresource: "status",
                paths: &[&["metadata", "labels"]],
            }])
            .columns(columns::deployments())
            .generation_with(&["annotations"])
            .rules(strategies::deployment())
            .done(),
        namespaced(GROUP, "replicasets", "ReplicaSet")
            .version("v1", defaults::replica_set)
            .short(&["rs"])
            .categories(&["all"])
            .scale(".spec.selector")
            .status()
            .columns(columns::replica_sets())
            .generation()
            .rules(strategies::replica_set())
            .done(),
        namespaced(GROUP, "statefulsets", "StatefulSet")
            .version("v1", defaults::stateful_set)
            .short(&["sts"])
            .categories(&["all"])
            .scale(".spec.selector")
            .status()
            .columns(columns::stateful_sets())
            .names_are(NameRule::Label)
            .generation()
            .rules(strategies::stateful_set())
            .done(),
        namespaced(GROUP, "daemonsets", "DaemonSet")
            .version("v1", defaults::daemon_set)
            .short(&["ds"])
            .categories(&["all"])
            .status()
            .columns(columns::daemon_sets())
            .generation()
            .rules(strategies::daemon_set())
            .done(),
        namespaced(GROUP, "controllerrevisions", "ControllerRevision")
            .version("v1", defaults::none)
            .columns(columns::controller_revisions())
            .rules(strategies::controller_revision())
            .done(),
    ]
}

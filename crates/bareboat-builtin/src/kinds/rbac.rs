//! The group `rbac.authorization.k8s.io`.

use super::build::{cluster, namespaced};
use crate::{columns, defaults, strategies};
use bareboat_api::Kind;
use bareboat_api::kind::NameRule;

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn kinds() -> Vec<Kind> {
    vec![
        namespaced(GROUP, "roles", "Role")
            .version("v1", defaults::none)
            .names_are(NameRule::PathSegment)
            .create_on_update()
            .rules(strategies::role())
            .done(),
        cluster(GROUP, "clusterroles", "ClusterRole")
            .version("v1", defaults::none)
            .names_are(NameRule::PathSegment)
            .create_on_update()
            .rules(strategies::cluster_role())
            .done(),
        namespaced(GROUP, "rolebindings", "RoleBinding")
            .version("v1", defaults::role_binding)
            .columns(columns::role_bindings())
            .names_are(NameRule::PathSegment)
            .create_on_update()
            .rules(strategies::role_binding())
            .done(),
        cluster(GROUP, "clusterrolebindings", "ClusterRoleBinding")
            .version("v1", defaults::role_binding)
            .columns(columns::role_bindings())
            .names_are(NameRule::PathSegment)
            .create_on_update()
            .rules(strategies::cluster_role_binding())
            .done(),
    ]
}

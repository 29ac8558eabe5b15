//! The group `coordination.k8s.io`.

use super::build::namespaced;
use crate::{columns, defaults, strategies};
use bareboat_api::Kind;

pub(super) fn kinds() -> Vec<Kind> {
    vec![
        namespaced("coordination.k8s.io", "leases", "Lease")
            .version("v1", defaults::none)
            .columns(columns::leases())
            .create_on_update()
            .conditional_update()
            .rules(strategies::lease())
            .done(),
    ]
}

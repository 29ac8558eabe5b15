//! The group `policy`.

use super::build::namespaced;
use crate::{columns, defaults, strategies};
use bareboat_api::Kind;

pub(super) fn kinds() -> Vec<Kind> {
    vec![
        namespaced("policy", "poddisruptionbudgets", "PodDisruptionBudget")
            .version("v1", defaults::none)
            .short(&["pdb"])
            .status()
            .columns(columns::disruption_budgets())
            .generation()
            .conditional_update()
            .rules(strategies::disruption_budget())
            .done(),
    ]
}

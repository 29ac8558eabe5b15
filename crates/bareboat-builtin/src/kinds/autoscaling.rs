//! The group `autoscaling`.

use super::build::namespaced;
use crate::{columns, defaults, strategies};
use bareboat_api::Kind;
use bareboat_api::kind::Conversion;
use std::sync::Arc;

const GROUP: &str = "autoscaling";

pub(super) fn kinds() -> Vec<Kind> {
    vec![
        namespaced(GROUP, "horizontalpodautoscalers", "HorizontalPodAutoscaler")
            .version("v2", defaults::autoscaler_v2)
            .version("v1", defaults::autoscaler_v1)
            .short(&["hpa"])
            .categories(&["all"])
            .status()
            .columns(columns::autoscalers())
            .rules(strategies::autoscaler())
            .with(|kind| {
                kind.conversion = Conversion::Pure(Arc::new(strategies::convert_autoscaler));
            })
            .done(),
    ]
}

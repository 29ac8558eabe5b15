//! The group `authentication.k8s.io`: reviews that are answered and not stored.

use super::build::cluster;
use crate::defaults;
use bareboat_api::Kind;

const GROUP: &str = "authentication.k8s.io";

pub(super) fn kinds() -> Vec<Kind> {
    vec![
        cluster(GROUP, "tokenreviews", "TokenReview")
            .version("v1", defaults::none)
            .create_only()
            .done(),
        cluster(GROUP, "selfsubjectreviews", "SelfSubjectReview")
            .version("v1", defaults::none)
            .create_only()
            .done(),
    ]
}

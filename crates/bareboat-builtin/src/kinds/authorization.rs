//! The group `authorization.k8s.io`: reviews that are answered and not stored.

use super::build::{cluster, namespaced};
use crate::defaults;
use bareboat_api::Kind;

const GROUP: &str = "authorization.k8s.io";

pub(super) fn kinds() -> Vec<Kind> {
    vec![
        namespaced(
            GROUP,
            "localsubjectaccessreviews",
            "LocalSubjectAccessReview",
        )
        .version("v1", defaults::none)
        .create_only()
        .done(),
        cluster(GROUP, "selfsubjectaccessreviews", "SelfSubjectAccessReview")
            .version("v1", defaults::none)
            .create_only()
            .done(),
        cluster(GROUP, "selfsubjectrulesreviews", "SelfSubjectRulesReview")
            .version("v1", defaults::none)
            .create_only()
            .done(),
        cluster(GROUP, "subjectaccessreviews", "SubjectAccessReview")
            .version("v1", defaults::none)
            .create_only()
            .done(),
    ]
}

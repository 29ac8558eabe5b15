//! The group `admissionregistration.k8s.io`.

use super::build::cluster;
use crate::{columns, defaults, strategies};
use bareboat_api::Kind;

const GROUP: &str = "admissionregistration.k8s.io";
const CATEGORY: &[&str] = &["api-extensions"];

pub(super) fn kinds() -> Vec<Kind> {
    vec![
        cluster(
            GROUP,
            "validatingwebhookconfigurations",
            "ValidatingWebhookConfiguration",
        )
        .version("v1", defaults::validating_webhooks)
        .categories(CATEGORY)
        .columns(columns::webhooks())
        .generation()
        .conditional_update()
        .rules(strategies::webhooks())
        .done(),
        cluster(
            GROUP,
            "mutatingwebhookconfigurations",
            "MutatingWebhookConfiguration",
        )
        .version("v1", defaults::mutating_webhooks)
        .categories(CATEGORY)
        .columns(columns::webhooks())
        .generation()
        .conditional_update()
        .rules(strategies::webhooks())
        .done(),
        cluster(
            GROUP,
            "validatingadmissionpolicies",
            "ValidatingAdmissionPolicy",
        )
        .version("v1", defaults::admission_policy)
        .categories(CATEGORY)
        .status()
        .status_alone()
        .columns(columns::validating_policies())
        .generation()
        .conditional_update()
        .rules(strategies::validating_policy())
        .done(),
        cluster(
            GROUP,
            "validatingadmissionpolicybindings",
            "ValidatingAdmissionPolicyBinding",
        )
        .version("v1", defaults::admission_binding)
        .categories(CATEGORY)
        .columns(columns::policy_bindings())
        .generation()
        .conditional_update()
        .rules(strategies::validating_policy_binding())
        .done(),
        cluster(
            GROUP,
            "mutatingadmissionpolicies",
            "MutatingAdmissionPolicy",
        )
        .version("v1", defaults::admission_policy)
        .categories(CATEGORY)
        .columns(columns::mutating_policies())
        .generation()
        .conditional_update()
        .rules(strategies::mutating_policy())
        .done(),
        cluster(
            GROUP,
            "mutatingadmissionpolicybindings",
            "MutatingAdmissionPolicyBinding",
        )
        .version("v1", defaults::admission_binding)
        .categories(CATEGORY)
        .columns(columns::policy_bindings())
        .generation()
        .conditional_update()
        .rules(strategies::policy_binding())
        .done(),
    ]
}

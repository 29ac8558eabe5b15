//! Columns of webhook configurations, admission policies and APIServices.

use super::{UNSET, condition, text};
use crate::reach::Reach;
use bareboat_api::Value;
use bareboat_api::kind::Column;

/// Returns the table columns of webhook configurations.
pub(crate) fn webhooks() -> Vec<Column> {
    vec![
        super::count("Webhooks", &["webhooks"]).typed("integer"),
        Column::age(),
    ]
}

fn param_kind() -> Column {
    Column::string("ParamKind", |policy, _| {
        let Some(kind) = policy.at(&["spec", "paramKind"]) else {
            return UNSET.into();
        };
        let version = kind.text(&["apiVersion"]);
        let kind = kind.text(&["kind"]);
        format!("{version}/{kind}").into()
    })
}

/// Returns the table columns of ValidatingAdmissionPolicy.
pub(crate) fn validating_policies() -> Vec<Column> {
    vec![
        super::count("Validations", &["spec", "validations"]).typed("integer"),
        param_kind(),
        Column::age(),
    ]
}

/// Returns the table columns of MutatingAdmissionPolicy.
pub(crate) fn mutating_policies() -> Vec<Column> {
    vec![
        super::count("Mutations", &["spec", "mutations"]).typed("integer"),
        param_kind(),
        Column::age(),
    ]
}

/// Returns the table columns of admission policy bindings.
pub(crate) fn policy_bindings() -> Vec<Column> {
    vec![
        text("PolicyName", &["spec", "policyName"]),
        Column::string("ParamRef", |binding, _| {
            let Some(reference) = binding.at(&["spec", "paramRef"]) else {
                return UNSET.into();
            };
            match (reference.text(&["namespace"]), reference.text(&["name"])) {
                ("", "") => "*".into(),
                ("", name) => format!("*/{name}").into(),
                (namespace, "") => format!("{namespace}/*").into(),
                (namespace, name) => format!("{namespace}/{name}").into(),
            }
        }),
        Column::age(),
    ]
}

/// Returns the table columns of APIService.
pub(crate) fn api_services() -> Vec<Column> {
    vec![
        Column::string("Service", |service, _| {
            if !service.has(&["spec", "service"]) {
                return "Local".into();
            }
            let target = |member| service.text(&["spec", "service", member]);
            format!("{}/{}", target("namespace"), target("name")).into()
        }),
        Column::string("Available", |service, _| available(service)),
        Column::age(),
    ]
}

fn available(service: &Value) -> Value {
    let Some(found) = condition(service, "Available") else {
        return "Unknown".into();
    };
    let status = found.text(&["status"]);
    match found.text(&["reason"]) {
        reason if status != "True" && !reason.is_empty() => format!("{status} ({reason})").into(),
        _ => status.into(),
    }
}

//! Columns of namespaces, ConfigMaps, Secrets, quotas, role bindings, certificates and flow control.

use super::{NONE, count, text, text_or};
use crate::reach::Reach;
use bareboat_api::Value;
use bareboat_api::kind::Column;
use bareboat_api::time::human_duration;

/// Returns the table columns of Namespace.
pub(crate) fn namespaces() -> Vec<Column> {
    vec![text("Status", &["status", "phase"]), Column::age()]
}

/// Returns the table columns of ConfigMap.
pub(crate) fn config_maps() -> Vec<Column> {
    vec![
        Column::string("Data", |map, _| {
            let size = |member| map.members(&[member]).map_or(0, bareboat_api::Map::len);
            Value::Int((size("data") + size("binaryData")) as i64)
        }),
        Column::age(),
    ]
}

/// Returns the table columns of Secret.
pub(crate) fn secrets() -> Vec<Column> {
    vec![
        text("Type", &["type"]),
        count("Data", &["data"]),
        Column::age(),
    ]
}

/// Returns the table columns of RoleBinding and ClusterRoleBinding.
pub(crate) fn role_bindings() -> Vec<Column> {
    let subjects = |name: &str, kind: &'static str| {
        Column::string(name, move |binding, _| {
            let found: Vec<String> = binding
                .list(&["subjects"])
                .iter()
                .filter(|subject| subject.text(&["kind"]) == kind)
                .map(|subject| match kind {
                    "ServiceAccount" => {
                        format!(
                            "{}/{}",
                            subject.text(&["namespace"]),
                            subject.text(&["name"])
                        )
                    }
                    _ => subject.text(&["name"]).to_owned(),
                })
                .collect();
            found.join(", ").into()
        })
        .wide()
    };
    vec![
        Column::string("Role", |binding, _| {
            let role = |member| binding.text(&["roleRef", member]);
            format!("{}/{}", role("kind"), role("name")).into()
        }),
        Column::age(),
        subjects("Users", "User"),
        subjects("Groups", "Group"),
        subjects("ServiceAccounts", "ServiceAccount"),
    ]
}

/// Returns the table columns of CertificateSigningRequest.
pub(crate) fn signing_requests() -> Vec<Column> {
    vec![
        Column::age(),
        text_or("SignerName", &["spec", "signerName"], NONE),
        text("Requestor", &["spec", "username"]),
        Column::string("RequestedDuration", |request, _| {
            match request.int(&["spec", "expirationSeconds"]) {
                Some(seconds) => human_duration(seconds).into(),
                None => NONE.into(),
            }
        }),
        Column::string("Condition", |request, _| request_condition(request).into()),
    ]
}

fn request_condition(request: &Value) -> String {
    let has = |ty| super::condition(request, ty).is_some();
    let mut words = Vec::new();
    // A denial outweighs an approval.
    if has("Denied") {
        words.push("Denied");
    } else if has("Approved") {
        words.push("Approved");
    } else {
        words.push("Pending");
    }
    if has("Failed") {
        words.push("Failed");
    }
    if !request.text(&["status", "certificate"]).is_empty() {
        words.push("Issued");
    }
    words.join(",")
}

/// Returns the table columns of PriorityLevelConfiguration.
pub(crate) fn priority_levels() -> Vec<Column> {
    let limited = |name: &str, path: &'static [&'static str]| {
        Column::string(name, move |level, _| match level.int(path) {
            Some(number) => number.into(),
            None => NONE.into(),
        })
    };
    vec![
        text("Type", &["spec", "type"]),
        limited(
            "NominalConcurrencyShares",
            &["spec", "limited", "nominalConcurrencyShares"],
        ),
        limited(
            "Queues",
            &["spec", "limited", "limitResponse", "queuing", "queues"],
        ),
        limited(
            "HandSize",
            &["spec", "limited", "limitResponse", "queuing", "handSize"],
        ),
        limited(
            "QueueLengthLimit",
            &[
                "spec",
                "limited",
                "limitResponse",
                "queuing",
                "queueLengthLimit",
            ],
        ),
        Column::age(),
    ]
}

/// Returns the table columns of ResourceQuota.
pub(crate) fn resource_quotas() -> Vec<Column> {
    let listed = |quota: &Value, limits: bool| -> Value {
        let Some(hard) = quota.members(&["status", "hard"]) else {
            return "".into();
        };
        let parts: Vec<String> = hard
            .iter()
            .filter(|(name, _)| name.starts_with("limits.") == limits)
            .map(|(name, hard)| {
                let used = quota.text(&["status", "used", name]);
                let used = if used.is_empty() { "0" } else { used };
                format!("{name}: {used}/{}", hard.as_str().unwrap_or(""))
            })
            .collect();
        parts.join(", ").into()
    };
    vec![
        Column::string("Request", move |quota, _| listed(quota, false)),
        Column::string("Limit", move |quota, _| listed(quota, true)),
        Column::age(),
    ]
}

/// Returns the table columns of FlowSchema.
pub(crate) fn flow_schemas() -> Vec<Column> {
    vec![
        text(
            "PriorityLevel",
            &["spec", "priorityLevelConfiguration", "name"],
        ),
        Column::string("MatchingPrecedence", |schema, _| {
            schema
                .int(&["spec", "matchingPrecedence"])
                .unwrap_or(0)
                .into()
        }),
        text_or(
            "DistinguisherMethod",
            &["spec", "distinguisherMethod", "type"],
            NONE,
        ),
        Column::age(),
        Column::string("MissingPL", |schema, _| {
            match super::condition(schema, "Dangling") {
                Some(found) => found.text(&["status"]).into(),
                None => "?".into(),
            }
        }),
    ]
}

/// Returns the table columns of ComponentStatus.
pub(crate) fn component_statuses() -> Vec<Column> {
    let of = |name: &str, member: &'static str| {
        Column::string(name, move |object, _| {
            let found = object
                .list(&["conditions"])
                .iter()
                .find(|condition| condition.text(&["type"]) == "Healthy");
            found
                .map_or("", |condition| condition.text(&[member]))
                .into()
        })
    };
    vec![
        Column::string("Status", |object, _| {
            let healthy = object.list(&["conditions"]).iter().any(|condition| {
                condition.text(&["type"]) == "Healthy" && condition.text(&["status"]) == "True"
            });
            if healthy { "Healthy" } else { "Unhealthy" }.into()
        }),
        of("Message", "message"),
        of("Error", "error"),
    ]
}

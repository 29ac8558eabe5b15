//! Quotas and limit ranges.

use super::Rules;
use super::check::{Errors, amount, immutable, name, path};
use crate::reach::Reach;
use bareboat_api::quantity::Quantity;
use bareboat_api::{FieldError, Object, Value, names};
use std::collections::HashSet;

/// What quotas do.
pub(crate) fn resource_quota() -> Rules {
    Rules::validating(|quota, wrong| {
        for (resource, value) in quota
            .value()
            .members(&["spec", "hard"])
            .into_iter()
            .flat_map(|map| map.iter())
        {
            let place = path(&["spec", "hard"]).key(resource);
            name(resource, names::qualified_name, place.clone(), wrong);
            amount(value, place.clone(), wrong);
            let counted = matches!(
                resource,
                "pods"
                    | "services"
                    | "secrets"
                    | "configmaps"
                    | "persistentvolumeclaims"
                    | "replicationcontrollers"
                    | "resourcequotas"
                    | "services.nodeports"
                    | "services.loadbalancers"
            );
            let whole = value
                .as_str()
                .and_then(|text| Quantity::parse(text).ok())
                .is_some_and(|amount| amount.as_i64().is_some());
            if counted && !whole {
                wrong.push(FieldError::invalid(
                    place,
                    value.clone(),
                    "must be an integer",
                ));
            }
        }
        scopes(quota.value(), wrong);
    })
    .updating(|new, old, wrong| {
        immutable(
            new.at(&["spec", "scopes"]),
            old.at(&["spec", "scopes"]),
            path(&["spec", "scopes"]),
            wrong,
        );
    })
}

fn scopes(quota: &Value, wrong: &mut Errors) {
    const KNOWN: [&str; 7] = [
        "Terminating",
        "NotTerminating",
        "BestEffort",
        "NotBestEffort",
        "PriorityClass",
        "CrossNamespacePodAffinity",
        "VolumeAttributesClass",
    ];
    let given = quota.list(&["spec", "scopes"]);
    let mut complain = |detail: &str| {
        wrong.push(FieldError::invalid(
            path(&["spec", "scopes"]),
            given.to_vec(),
            detail,
        ));
    };
    let has = |scope: &str| given.iter().any(|found| found.as_str() == Some(scope));
    if !given
        .iter()
        .all(|scope| scope.as_str().is_some_and(|scope| KNOWN.contains(&scope)))
    {
        complain("unsupported scope");
    }
    if (has("BestEffort") && has("NotBestEffort")) || (has("Terminating") && has("NotTerminating"))
    {
        complain("conflicting scopes");
    }
}

/// What limit ranges do.
pub(crate) fn limit_range() -> Rules {
    Rules::validating(validate_limit_range)
}

fn validate_limit_range(range: &Object, wrong: &mut Errors) {
    let mut seen: HashSet<&str> = HashSet::new();
    for (index, limit) in range.value().list(&["spec", "limits"]).iter().enumerate() {
        let place = path(&["spec", "limits"]).index(index);
        let ty = limit.text(&["type"]);
        name(ty, names::qualified_name, place.child("type"), wrong);
        if seen.contains(&ty) {
            wrong.push(FieldError::duplicate(place.child("type"), ty));
        }
        seen.insert(ty);
        if ty == "Pod" {
            for member in ["default", "defaultRequest"] {
                if limit.members(&[member]).is_some_and(|map| !map.is_empty()) {
                    wrong.push(FieldError::forbidden(
                        place.child(member),
                        "may not be specified when `type` is 'Pod'",
                    ));
                }
            }
        }
        let storage = |list| limit.has(&[list, "storage"]);
        if ty == "PersistentVolumeClaim" && !storage("min") && !storage("max") {
            wrong.push(FieldError::required(
                place.child("limits"),
                "either minimum or maximum storage value is required, but neither was provided",
            ));
        }
        order(limit, &place, wrong);
    }
}

/// What is less and what is more must be so.
fn order(limit: &Value, place: &bareboat_api::FieldPath, wrong: &mut Errors) {
    // The smaller list, the greater one, which of them is blamed and how they are called.
    const PAIRS: [(&str, &str, &str, &str, &str); 6] = [
        ("min", "max", "min", "min", "max"),
        (
            "min",
            "defaultRequest",
            "defaultRequest",
            "min",
            "default request",
        ),
        (
            "defaultRequest",
            "max",
            "defaultRequest",
            "default request",
            "max",
        ),
        (
            "defaultRequest",
            "default",
            "defaultRequest",
            "default request",
            "default limit",
        ),
        ("min", "default", "default", "min", "default"),
        ("default", "max", "default", "default", "max"),
    ];
    for (less, more, blamed, less_name, more_name) in PAIRS {
        let (Some(low), Some(high)) = (limit.members(&[less]), limit.members(&[more])) else {
            continue;
        };
        for (resource, small) in low.iter() {
            let parse = |value: &Value| value.as_str().and_then(|text| Quantity::parse(text).ok());
            let (Some(a), Some(b)) = (parse(small), high.get(resource).and_then(parse)) else {
                continue;
            };
            if a > b {
                let detail = format!(
                    "{less_name} value {} is greater than {more_name} value {}",
                    a, b
                );
                let shown = limit.at(&[blamed, resource]).cloned().unwrap_or_default();
                wrong.push(FieldError::invalid(
                    place.child(blamed).key(resource),
                    shown,
                    detail,
                ));
            }
        }
    }
}

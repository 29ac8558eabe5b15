//! ResourceQuotas and LimitRanges.

use super::Rules;
use super::amounts::{
    amount_of, container_resource_name, fits_scope, quantity, quota_resource_name, resource_name,
};
use super::check::{Errors, immutable, name, path};
use crate::reach::Reach;
use bareboat_api::quantity::Quantity;
use bareboat_api::{FieldError, FieldPath, Map, Object, Value, names};
use std::collections::{HashMap, HashSet};

/// Returns the strategy of ResourceQuota: validation of spec and status; the scopes are immutable.
pub(crate) fn resource_quota() -> Rules {
    Rules::validating(|quota, wrong| {
        amounts(quota, "spec", "hard", wrong);
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
    .statuses(|new, _, wrong| {
        for list in ["hard", "used"] {
            amounts(new, "status", list, wrong);
        }
    })
}

fn amounts(quota: &Object, part: &str, list: &str, wrong: &mut Errors) {
    let given = quota.value().members(&[part, list]);
    for (resource, value) in given.into_iter().flat_map(Map::iter) {
        let place = path(&[part, list]).key(resource);
        quota_resource_name(resource, &place, wrong);
        amount_of(resource, value, &place, wrong);
    }
}

const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
];

fn scopes(quota: &Value, wrong: &mut Errors) {
    let limited: Vec<&str> = quota
        .members(&["spec", "hard"])
        .into_iter()
        .flat_map(Map::keys)
        .collect();
    let given = quota.list(&["spec", "scopes"]);
    let place = path(&["spec", "scopes"]);
    let mut complain = |detail: &str| {
        if !wrong.is_full() {
            wrong.push(FieldError::invalid(place.clone(), given.to_vec(), detail));
        }
    };
    let all: Vec<&str> = given.iter().filter_map(Value::as_str).collect();
    let mut misfits = Misfits::of(&limited);
    for scope in &all {
        if !SCOPES.contains(scope) {
            complain("unsupported scope");
        }
        for _ in 0..misfits.count(scope) {
            complain("unsupported scope applied to resource");
        }
    }
    if conflict(&all) {
        complain("conflicting scopes");
    }
    selector(quota, &limited, wrong);
}

/// The number of limited resources that do not fit a scope. Each scope is checked once.
struct Misfits<'a> {
    limited: &'a [&'a str],
    known: HashMap<&'a str, usize>,
}

impl<'a> Misfits<'a> {
    fn of(limited: &'a [&'a str]) -> Misfits<'a> {
        let known = HashMap::new();
        Misfits { limited, known }
    }

    fn count(&mut self, scope: &'a str) -> usize {
        let limited = self.limited.iter();
        *self.known.entry(scope).or_insert_with(|| {
            limited
                .filter(|resource| !fits_scope(scope, resource))
                .count()
        })
    }
}

fn conflict(scopes: &[&str]) -> bool {
    let has = |scope| scopes.contains(&scope);
    has("BestEffort") && has("NotBestEffort") || has("Terminating") && has("NotTerminating")
}

/// Validates scope selector expressions.
fn selector(quota: &Value, limited: &[&str], wrong: &mut Errors) {
    const PLAIN: &str = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
    let place = path(&["spec", "scopeSelector", "matchExpressions"]);
    let terms = quota.list(&["spec", "scopeSelector", "matchExpressions"]);
    let mut scopes = Vec::new();
    let mut misfits = Misfits::of(limited);
    for term in terms {
        let scope = term.text(&["scopeName"]);
        let operator = term.text(&["operator"]);
        let values = term.list(&["values"]);
        scopes.push(scope);
        let mut complain = |member: &str, value: Value, detail: &str| {
            wrong.push(FieldError::invalid(place.child(member), value, detail));
        };
        if !SCOPES.contains(&scope) {
            complain("scopeName", scope.into(), "unsupported scope");
        }
        let whole = !matches!(scope, "PriorityClass" | "VolumeAttributesClass");
        if whole && SCOPES.contains(&scope) && operator != "Exists" {
            complain("operator", operator.into(), PLAIN);
        }
        match operator {
            "In" | "NotIn" if values.is_empty() => {
                let detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                wrong.push(FieldError::required(place.child("values"), detail));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                complain("values", values.to_vec().into(), detail);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => complain("operator", operator.into(), "not a valid selector operator"),
        }
        for _ in 0..misfits.count(scope) {
            if wrong.is_full() {
                break;
            }
            let shown = quota.at(&["spec", "scopeSelector"]).cloned();
            let detail = "unsupported scope applied to resource";
            wrong.push(FieldError::invalid(
                place.clone(),
                shown.unwrap_or_default(),
                detail,
            ));
        }
    }
    if conflict(&scopes) {
        let shown = quota.list(&["spec", "scopes"]).to_vec();
        wrong.push(FieldError::invalid(place, shown, "conflicting scopes"));
    }
}

/// Returns the strategy of LimitRange: validation.
pub(crate) fn limit_range() -> Rules {
    Rules::validating(validate_limit_range)
}

fn validate_limit_range(range: &Object, wrong: &mut Errors) {
    let mut seen: HashSet<&str> = HashSet::new();
    for (index, limit) in range.value().list(&["spec", "limits"]).iter().enumerate() {
        let place = path(&["spec", "limits"]).index(index);
        let ty = limit.text(&["type"]);
        let complaints = names::qualified_name(ty);
        name(ty, names::qualified_name, place.child("type"), wrong);
        let known = ["Pod", "Container", "PersistentVolumeClaim"];
        if complaints.is_empty() && !ty.contains('/') && !known.contains(&ty) {
            let detail = "must be a standard limit type or fully qualified";
            wrong.push(FieldError::invalid(place.child("type"), ty, detail));
        }
        for list in [
            "max",
            "min",
            "default",
            "defaultRequest",
            "maxLimitRequestRatio",
        ] {
            if ty == "Pod" && list.starts_with("default") {
                continue;
            }
            for resource in limit.members(&[list]).into_iter().flat_map(Map::keys) {
                let place = place.child(list).key(resource);
                match ty {
                    "Pod" | "Container" => container_resource_name(resource, &place, wrong),
                    _ => {
                        resource_name(resource, &place, wrong);
                    }
                }
            }
        }
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
        ratios(limit, &place, wrong);
    }
}

/// Validates limit-to-request ratios.
fn ratios(limit: &Value, place: &FieldPath, wrong: &mut Errors) {
    let given = limit.members(&["maxLimitRequestRatio"]);
    for (resource, value) in given.into_iter().flat_map(Map::iter) {
        let Some(ratio) = quantity(value) else {
            continue;
        };
        let mut complain = |detail: String| {
            let place = place.child("maxLimitRequestRatio").key(resource);
            wrong.push(FieldError::invalid(place, value.clone(), detail));
        };
        if ratio.millis() < 1000 {
            complain(format!("ratio {ratio} is less than 1"));
        }
        let bound = |list| limit.at(&[list, resource]).and_then(quantity);
        if let (Some(low), Some(high)) = (bound("min"), bound("max")) {
            let most = high.as_f64() / low.as_f64();
            if ratio.as_f64() > most {
                complain(format!("ratio {ratio} is greater than max/min = {most:.6}"));
            }
        }
    }
}

/// Validates the order of min, default request, default and max.
fn order(limit: &Value, place: &FieldPath, wrong: &mut Errors) {
    // Lower list, upper list, list that the error names, and the names of both in the text.
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
                // The error names the default and shows the other value.
                let shown = match (less, more) {
                    ("min", "default") => less,
                    ("default", "max") => more,
                    _ => blamed,
                };
                let shown = limit.at(&[shown, resource]).cloned().unwrap_or_default();
                wrong.push(FieldError::invalid(
                    place.child(blamed).key(resource),
                    shown,
                    detail,
                ));
            }
        }
    }
}

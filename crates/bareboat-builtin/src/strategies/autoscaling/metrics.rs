//! Validates metrics and scaling behavior of autoscalers.

use super::super::amounts::quantity;
use super::super::check::{Errors, name, one_of, required};
use crate::reach::Reach;
use bareboat_api::labels::validate_selector;
use bareboat_api::{FieldError, FieldPath, Value, names};

/// Metric source types, and the member for each.
const SOURCES: [(&str, &str); 5] = [
    ("ContainerResource", "containerResource"),
    ("External", "external"),
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
];

/// Validates the metrics of an autoscaler.
pub(super) fn metrics(spec: &Value, place: &FieldPath, wrong: &mut Errors) {
    let given = spec.list(&["metrics"]);
    for (index, metric) in given.iter().enumerate() {
        source(metric, &place.index(index), wrong);
    }
    let outside = given
        .iter()
        .any(|metric| matches!(metric.text(&["type"]), "Object" | "External"));
    if spec.int(&["minReplicas"]) == Some(0) && !outside {
        let detail = "must specify at least one Object or External metric to support scaling to zero replicas";
        wrong.push(FieldError::forbidden(place.clone(), detail));
    }
}

fn source(metric: &Value, place: &FieldPath, wrong: &mut Errors) {
    let ty = metric.text(&["type"]);
    let at = place.child("type");
    if ty.is_empty() {
        let detail = "must specify a metric source type";
        wrong.push(FieldError::required(at.clone(), detail));
    }
    let known: Vec<&str> = SOURCES.iter().map(|(ty, _)| *ty).collect();
    one_of(ty, &known, at, wrong);
    let present = SOURCES
        .iter()
        .filter(|(_, member)| metric.has(&[member]))
        .count();
    for (source, member) in SOURCES {
        let Some(given) = metric.at(&[member]).filter(|value| !value.is_null()) else {
            if source == ty {
                let detail = "must populate information for the given metric source";
                wrong.push(FieldError::required(place.child(member), detail));
            }
            continue;
        };
        let place = place.child(member);
        if source != ty && present == 1 {
            continue;
        }
        if source != ty {
            let detail = "must populate the given metric source only";
            wrong.push(FieldError::forbidden(place, detail));
            continue;
        }
        match source {
            "Resource" | "ContainerResource" => of_resource(source, given, &place, wrong),
            _ => of_others(source, given, &place, wrong),
        }
    }
}

fn of_resource(source: &str, given: &Value, place: &FieldPath, wrong: &mut Errors) {
    if given.text(&["name"]).is_empty() {
        let detail = "must specify a resource name";
        wrong.push(FieldError::required(place.child("name"), detail));
    }
    if source == "ContainerResource" && given.text(&["container"]).is_empty() {
        let detail = "must specify a container";
        wrong.push(FieldError::required(place.child("container"), detail));
    }
    let target = given.at(&["target"]).unwrap_or(&Value::Null);
    let place = place.child("target");
    amounts(target, &place, wrong);
    let (utilization, value) = (
        target.has(&["averageUtilization"]),
        target.has(&["averageValue"]),
    );
    if !utilization && !value {
        let detail = "must set either a target raw value or a target utilization";
        wrong.push(FieldError::required(
            place.child("averageUtilization"),
            detail,
        ));
    }
    if utilization && value {
        let detail = "may not set both a target raw value and a target utilization";
        wrong.push(FieldError::forbidden(place.child("averageValue"), detail));
    }
}

fn of_others(source: &str, given: &Value, place: &FieldPath, wrong: &mut Errors) {
    if source == "Object" {
        let described = given.at(&["describedObject"]).unwrap_or(&Value::Null);
        reference(described, &place.child("describedObject"), wrong);
    }
    identifier(given, &place.child("metric"), wrong);
    let target = given.at(&["target"]).unwrap_or(&Value::Null);
    let place = place.child("target");
    amounts(target, &place, wrong);
    let (value, average) = (target.has(&["value"]), target.has(&["averageValue"]));
    match source {
        "Pods" if !average => {
            let detail = "must specify a positive target averageValue";
            wrong.push(FieldError::required(place.child("averageValue"), detail));
        }
        "Object" if !value && !average => {
            let detail = "must set either a target value or averageValue";
            wrong.push(FieldError::required(place.child("averageValue"), detail));
        }
        "Object" if value && average => {
            let detail = "may not set both a target value and averageValue";
            wrong.push(FieldError::forbidden(place.child("value"), detail));
        }
        "External" if !value && !average => {
            let detail = "must set either a target value for metric or a per-pod target";
            wrong.push(FieldError::required(place.child("averageValue"), detail));
        }
        "External" if value && average => {
            let detail = "may not set both a target value for metric and a per-pod target";
            wrong.push(FieldError::forbidden(place.child("value"), detail));
        }
        _ => {}
    }
}

fn identifier(given: &Value, place: &FieldPath, wrong: &mut Errors) {
    let text = given.text(&["metric", "name"]);
    let at = place.child("name");
    if text.is_empty() {
        wrong.push(FieldError::required(at, "must specify a metric name"));
    } else {
        name(text, names::path_segment, at, wrong);
    }
    let selector = given.at(&["metric", "selector"]);
    if let Some(selector) = selector.filter(|value| !value.is_null()) {
        wrong.extend(validate_selector(selector, &place.child("selector")));
    }
}

/// Validates that target amounts are positive.
fn amounts(target: &Value, place: &FieldPath, wrong: &mut Errors) {
    let ty = target.text(&["type"]);
    let at = place.child("type");
    if ty.is_empty() {
        wrong.push(FieldError::required(
            at.clone(),
            "must specify a metric target type",
        ));
    }
    if !matches!(ty, "Utilization" | "Value" | "AverageValue") {
        let detail = "must be either Utilization, Value, or AverageValue";
        wrong.push(FieldError::invalid(at, ty, detail));
    }
    if let Some(percent) = target
        .int(&["averageUtilization"])
        .filter(|number| *number < 1)
    {
        let at = place.child("averageUtilization");
        wrong.push(FieldError::invalid(at, percent, "must be greater than 0"));
    }
    for member in ["value", "averageValue"] {
        let Some(value) = target.at(&[member]) else {
            continue;
        };
        if quantity(value).is_some_and(|amount| amount.sign() != 1) {
            let at = place.child(member);
            wrong.push(FieldError::invalid(at, value.clone(), "must be positive"));
        }
    }
}

/// Validates an object reference.
pub(super) fn reference(given: &Value, place: &FieldPath, wrong: &mut Errors) {
    for member in ["kind", "name"] {
        let text = given.text(&[member]);
        let place = place.child(member);
        if required(text, place.clone(), wrong) {
            name(text, names::path_segment, place, wrong);
        }
    }
}

/// Validates scaling behavior.
pub(super) fn behavior(spec: &Value, place: &FieldPath, wrong: &mut Errors) {
    for direction in ["scaleUp", "scaleDown"] {
        let Some(rules) = spec
            .at(&["behavior", direction])
            .filter(|value| !value.is_null())
        else {
            continue;
        };
        let place = place.child(direction);
        let at = place.child("stabilizationWindowSeconds");
        match rules.int(&["stabilizationWindowSeconds"]) {
            Some(window) if window < 0 => {
                let detail = "must be greater than or equal to zero";
                wrong.push(FieldError::invalid(at, window, detail));
            }
            Some(window) if window > 3600 => {
                let detail = "must be less than or equal to 3600";
                wrong.push(FieldError::invalid(at, window, detail));
            }
            _ => {}
        }
        if rules.has(&["selectPolicy"]) {
            let policy = rules.text(&["selectPolicy"]);
            let known = ["Disabled", "Max", "Min"];
            one_of(policy, &known, place.child("selectPolicy"), wrong);
        }
        if let Some(value) = rules.at(&["tolerance"])
            && quantity(value).is_some_and(|amount| amount.sign() < 0)
        {
            let detail = "must be greater than or equal to 0";
            let at = place.child("tolerance");
            wrong.push(FieldError::invalid(at, value.clone(), detail));
        }
        let policies = rules.list(&["policies"]);
        let place = place.child("policies");
        if policies.is_empty() {
            let detail = "must specify at least one Policy";
            wrong.push(FieldError::required(place.clone(), detail));
        }
        for (index, policy) in policies.iter().enumerate() {
            let place = place.index(index);
            let ty = policy.text(&["type"]);
            one_of(ty, &["Percent", "Pods"], place.child("type"), wrong);
            for member in ["value", "periodSeconds"] {
                let number = policy.int(&[member]).unwrap_or(0);
                let at = place.child(member);
                if number <= 0 {
                    wrong.push(FieldError::invalid(at, number, "must be greater than zero"));
                } else if member == "periodSeconds" && number > 1800 {
                    let detail = "must be less than or equal to 1800";
                    wrong.push(FieldError::invalid(at, number, detail));
                }
            }
        }
    }
}

//! Autoscalers, disruption budgets, and how the two versions of autoscalers become each other.

mod metrics;

use super::Rules;
use super::check::{Errors, condition, not_negative, number_or_percent, one_of, path, percent};
use crate::reach::Reach;
use bareboat_api::kind::ConvertError;
use bareboat_api::labels::validate_selector;
use bareboat_api::{FieldError, Map, Object, Value, value};

/// What autoscalers do.
pub(crate) fn autoscaler() -> Rules {
    Rules::validating(validate_autoscaler)
}

/// What disruption budgets do.
pub(crate) fn disruption_budget() -> Rules {
    Rules::validating(|object, wrong| {
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let place = path(&["spec"]);
        if spec.has(&["minAvailable"]) && spec.has(&["maxUnavailable"]) {
            wrong.push(FieldError::invalid(
                place.clone(),
                spec.clone(),
                "minAvailable and maxUnavailable cannot be both set",
            ));
        }
        for member in ["minAvailable", "maxUnavailable"] {
            let value = spec.at(&[member]);
            number_or_percent(value, place.child(member), wrong);
            if let Some(Value::String(text)) = value
                && percent(text).is_some_and(|number| number > 100)
            {
                wrong.push(FieldError::invalid(
                    place.child(member),
                    text.clone(),
                    "must not be greater than 100%",
                ));
            }
        }
        if let Some(selector) = spec.at(&["selector"]).filter(|value| !value.is_null()) {
            wrong.extend(validate_selector(selector, &place.child("selector")));
        }
        let policy = spec.text(&["unhealthyPodEvictionPolicy"]);
        if !policy.is_empty() {
            one_of(
                policy,
                &["AlwaysAllow", "IfHealthyBudget"],
                place.child("unhealthyPodEvictionPolicy"),
                wrong,
            );
        }
    })
    .statuses(|new, _, wrong| {
        let status = new.get("status").unwrap_or(&Value::Null);
        let place = path(&["status"]);
        for (index, entry) in status.list(&["conditions"]).iter().enumerate() {
            condition(entry, &place.child("conditions").index(index), wrong);
        }
        for member in [
            "disruptionsAllowed",
            "currentHealthy",
            "desiredHealthy",
            "expectedPods",
        ] {
            not_negative(status.int(&[member]), place.child(member), wrong);
        }
    })
}

fn validate_autoscaler(object: &Object, wrong: &mut Errors) {
    // What an older version says is judged by what it means.
    let newer = convert(object.value().clone(), "autoscaling/v2", None);
    let newer = newer.unwrap_or_else(|_| object.value().clone());
    let spec = newer.at(&["spec"]).unwrap_or(&Value::Null);
    let place = path(&["spec"]);
    let minimum = spec.int(&["minReplicas"]);
    let maximum = spec.int(&["maxReplicas"]).unwrap_or(0);
    if let Some(minimum) = minimum.filter(|number| *number < 1) {
        wrong.push(FieldError::invalid(
            place.child("minReplicas"),
            minimum,
            "must be greater than or equal to 1",
        ));
    }
    let max_place = place.child("maxReplicas");
    if maximum == 0 {
        wrong.push(FieldError::required(
            max_place.clone(),
            "must be set and greater than 0",
        ));
    } else if maximum < 0 {
        wrong.push(FieldError::invalid(
            max_place.clone(),
            maximum,
            "must be greater than or equal to 1",
        ));
    }
    if minimum.is_some_and(|minimum| maximum < minimum) {
        wrong.push(FieldError::invalid(
            max_place,
            maximum,
            "must be greater than or equal to `minReplicas`",
        ));
    }
    let target = spec.at(&["scaleTargetRef"]).unwrap_or(&Value::Null);
    let target_place = place.child("scaleTargetRef");
    metrics::reference(target, &target_place, wrong);
    let version = target.text(&["apiVersion"]);
    let complaint = match version.matches('/').count() {
        1 => None,
        0 => Some("apiVersion must specify API group".to_owned()),
        _ => Some(format!("unexpected GroupVersion string: {version}")),
    };
    // The core group has one kind that can be scaled, and it is known without a group.
    let core = version == "v1" && target.text(&["kind"]) == "ReplicationController";
    if let Some(complaint) = complaint.filter(|_| !core) {
        let place = target_place.child("apiVersion");
        wrong.push(FieldError::invalid(place, version, complaint));
    }
    metrics::metrics(spec, &place.child("metrics"), wrong);
    metrics::behavior(spec, &place.child("behavior"), wrong);
}

/// The annotations under which version 1 keeps what only version 2 can say.
const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

/// Turns an autoscaler of one version into one of the other.
pub(crate) fn convert(
    mut object: Value,
    to: &str,
    _stored: Option<&Value>,
) -> Result<Value, ConvertError> {
    let map = object.make_object();
    if map.get_str("apiVersion") == Some(to) {
        return Ok(object);
    }
    match to {
        "autoscaling/v1" => to_v1(map),
        "autoscaling/v2" => to_v2(map),
        other => {
            return Err(ConvertError(format!("autoscalers have no version {other}")));
        }
    }
    map.insert("apiVersion", to.into());
    Ok(object)
}

fn is_plain_cpu(metric: &Value) -> bool {
    metric.text(&["type"]) == "Resource"
        && metric.text(&["resource", "name"]) == "cpu"
        && metric.has(&["resource", "target", "averageUtilization"])
}

fn to_v1(map: &mut Map) {
    let spec = map.object_mut("spec");
    let mut kept = Vec::new();
    if let Some(Value::Array(metrics)) = spec.remove("metrics") {
        let mut percentage = None;
        for metric in metrics {
            if percentage.is_none() && is_plain_cpu(&metric) {
                percentage = metric
                    .at(&["resource", "target", "averageUtilization"])
                    .cloned();
            } else {
                kept.push(metric);
            }
        }
        if let Some(percentage) = percentage {
            spec.insert("targetCPUUtilizationPercentage", percentage);
        }
    }
    let behavior = spec.remove("behavior").filter(|value| !value.is_null());
    let status = map.object_mut("status");
    let current = match status.remove("currentMetrics") {
        Some(Value::Array(metrics)) => metrics,
        _ => Vec::new(),
    };
    let (cpu, others): (Vec<Value>, Vec<Value>) = current.into_iter().partition(|metric| {
        metric.text(&["type"]) == "Resource" && metric.text(&["resource", "name"]) == "cpu"
    });
    let percentage = cpu
        .first()
        .and_then(|metric| metric.at(&["resource", "current", "averageUtilization"]))
        .cloned();
    if let Some(percentage) = percentage {
        status.insert("currentCPUUtilizationPercentage", percentage);
    }
    let conditions = match status.remove("conditions") {
        Some(Value::Array(conditions)) => conditions,
        _ => Vec::new(),
    };
    if !status.contains_key("currentReplicas") {
        status.insert("currentReplicas", Value::Int(0));
    }
    let mut notes = Vec::new();
    for (key, list) in [(METRICS, kept), (CURRENT, others), (CONDITIONS, conditions)] {
        if !list.is_empty() {
            notes.push((key, Value::Array(list)));
        }
    }
    if let Some(behavior) = behavior {
        notes.push((BEHAVIOR, behavior));
    }
    if !notes.is_empty() {
        let annotations = map.object_mut("metadata").object_mut("annotations");
        for (key, value) in notes {
            annotations.insert(key, value.to_string().into());
        }
    }
}

fn to_v2(map: &mut Map) {
    let mut taken = |key: &str| -> Option<Value> {
        let metadata = map.object_mut("metadata");
        let annotations = metadata.get_mut("annotations")?.as_object_mut()?;
        let text = annotations.remove(key);
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
        serde_json::from_str(text?.as_str()?).ok()
    };
    let list = |value: Option<Value>| match value {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    };
    let kept = list(taken(METRICS));
    let others = list(taken(CURRENT));
    let conditions = taken(CONDITIONS);
    let behavior = taken(BEHAVIOR);
    let spec = map.object_mut("spec");
    let mut metrics = Vec::new();
    if let Some(percentage) = spec.remove("targetCPUUtilizationPercentage") {
        metrics.push(value!({"type": "Resource", "resource": {"name": "cpu",
            "target": {"type": "Utilization", "averageUtilization": (percentage)}}}));
    }
    metrics.extend(kept);
    if !metrics.is_empty() {
        spec.insert("metrics", Value::Array(metrics));
    }
    if let Some(behavior) = behavior {
        spec.insert("behavior", behavior);
    }
    let status = map.object_mut("status");
    let mut current = Vec::new();
    if let Some(percentage) = status.remove("currentCPUUtilizationPercentage") {
        current.push(value!({"type": "Resource", "resource": {"name": "cpu",
            "current": {"averageUtilization": (percentage)}}}));
    }
    current.extend(others);
    let current = if current.is_empty() {
        Value::Null
    } else {
        Value::Array(current)
    };
    status.insert("currentMetrics", current);
    if status.get("currentReplicas") == Some(&Value::Int(0)) {
        status.remove("currentReplicas");
    }
    if let Some(conditions) = conditions {
        status.insert("conditions", conditions);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_become_each_other_without_loss() {
        let newer = value!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"},
            "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "D", "name": "x"}, "behavior": {"scaleUp": {"selectPolicy": "Max"}},
                "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}},
                            {"type": "Pods", "pods": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "1"}}}]},
            "status": {"desiredReplicas": 0, "currentMetrics": null}});
        let older = convert(newer.clone(), "autoscaling/v1", None).expect("version 1");
        assert_eq!(
            older.int(&["spec", "targetCPUUtilizationPercentage"]),
            Some(80)
        );
        assert!(older.has(&["metadata", "annotations", METRICS]));
        let back = convert(older, "autoscaling/v2", None).expect("version 2");
        assert_eq!(back, newer);
        assert!(convert(newer, "autoscaling/v9", None).is_err());
    }
}

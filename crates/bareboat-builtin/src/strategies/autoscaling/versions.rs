//! Converts autoscalers between `v1` and `v2`.
//!
//! `v1` has one metric, CPU utilization. It keeps all other `v2` fields in annotations, see [`notes`].

mod notes;

use crate::reach::Reach;
use bareboat_api::kind::ConvertError;
use bareboat_api::{Map, Value, value};
use notes::{
    behavior_text, behavior_value, condition_text, current_text, current_value, list_text,
    target_text, target_value,
};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

/// Annotations that are never stored: `v1` shows `v2` fields in them.
pub(super) const ANNOTATIONS: [&str; 6] = [
    METRICS,
    CURRENT,
    CONDITIONS,
    BEHAVIOR,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];

/// Converts an autoscaler to the other version.
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

/// Returns a `v1` autoscaler as it looks after conversion to `v2` and back.
pub(crate) fn normal(mut object: Value) -> Value {
    let map = object.make_object();
    to_v2(map);
    to_v1(map);
    object
}

/// Keeps the annotations about the spec or the status, whichever is not written.
pub(super) fn keep_notes(new: &mut Map, old: &Map, written: Option<&str>) {
    let kept: &[&str] = match written {
        None => &[CURRENT, CONDITIONS],
        Some(_) => &[METRICS, BEHAVIOR],
    };
    for key in kept {
        let live = old
            .get("metadata")
            .and_then(|metadata| metadata.at(&["annotations", key]));
        let metadata = new.object_mut("metadata");
        match live {
            Some(note) => {
                metadata
                    .object_mut("annotations")
                    .insert(*key, note.clone());
            }
            None => {
                let annotations = metadata.get_mut("annotations");
                if let Some(annotations) = annotations.and_then(Value::as_object_mut)
                    && annotations.remove(key).is_some()
                    && annotations.is_empty()
                {
                    metadata.remove("annotations");
                }
            }
        }
    }
}

fn is_cpu(metric: &Value) -> bool {
    metric.text(&["type"]) == "Resource" && metric.text(&["resource", "name"]) == "cpu"
}

fn taken(map: &mut Map, member: &str) -> Vec<Value> {
    match map.remove(member) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

fn to_v1(map: &mut Map) {
    drop_annotations(map);
    let spec = map.object_mut("spec");
    let utilization = ["resource", "target", "averageUtilization"];
    let (plain, others): (Vec<Value>, Vec<Value>) = taken(spec, "metrics")
        .into_iter()
        .partition(|metric| is_cpu(metric) && metric.has(&utilization));
    if let Some(percentage) = plain.first().and_then(|metric| metric.at(&utilization)) {
        spec.insert("targetCPUUtilizationPercentage", percentage.clone());
    }
    let behavior = spec.remove("behavior").filter(|value| !value.is_null());
    let status = map.object_mut("status");
    let current = taken(status, "currentMetrics");
    let used = current
        .iter()
        .filter(|metric| is_cpu(metric))
        .filter_map(|metric| metric.at(&["resource", "current", "averageUtilization"]))
        .next_back();
    if let Some(percentage) = used {
        status.insert("currentCPUUtilizationPercentage", percentage.clone());
    }
    let conditions = taken(status, "conditions");
    if !status.contains_key("currentReplicas") {
        status.insert("currentReplicas", Value::Int(0));
    }
    let mut notes: Vec<(&str, String)> = Vec::new();
    for (key, items, print) in [
        (METRICS, others, target_text as fn(&Value) -> String),
        (CURRENT, current, current_text),
        (CONDITIONS, conditions, condition_text),
    ] {
        if !items.is_empty() {
            notes.push((key, list_text(&items, print)));
        }
    }
    notes.extend(behavior.map(|behavior| (BEHAVIOR, behavior_text(&behavior))));
    if !notes.is_empty() {
        let annotations = map.object_mut("metadata").object_mut("annotations");
        for (key, text) in notes {
            annotations.insert(key, text.into());
        }
    }
}

fn to_v2(map: &mut Map) {
    let noted = |key: &str| -> Option<Value> {
        let annotations = map.get("metadata")?.at(&["annotations"])?;
        serde_json::from_str(annotations.at(&[key])?.as_str()?).ok()
    };
    let list = |key: &str, read: fn(&Value) -> Option<Value>| -> Option<Vec<Value>> {
        noted(key)?.as_array()?.iter().map(read).collect()
    };
    let others = list(METRICS, target_value);
    let current = list(CURRENT, current_value);
    let conditions = list(CONDITIONS, |condition| {
        condition.as_object().map(|_| condition.clone())
    });
    let behavior = noted(BEHAVIOR).and_then(|behavior| behavior_value(&behavior));
    drop_annotations(map);
    let spec = map.object_mut("spec");
    let mut metrics = others.unwrap_or_default();
    if let Some(percentage) = spec.remove("targetCPUUtilizationPercentage") {
        metrics.push(value!({"type": "Resource", "resource": {"name": "cpu",
            "target": {"type": "Utilization", "averageUtilization": (percentage)}}}));
    }
    if !metrics.is_empty() {
        spec.insert("metrics", Value::Array(metrics));
    }
    if let Some(behavior) = behavior {
        spec.insert("behavior", behavior);
    }
    let status = map.object_mut("status");
    let percentage = status.remove("currentCPUUtilizationPercentage");
    let converted = percentage.map(|percentage| {
        vec![value!({"type": "Resource", "resource": {"name": "cpu",
            "current": {"averageUtilization": (percentage)}}})]
    });
    // Annotations are more precise than the percentage.
    let current = current.or(converted).map_or(Value::Null, Value::Array);
    status.insert("currentMetrics", current);
    if status.get("currentReplicas") == Some(&Value::Int(0)) {
        status.remove("currentReplicas");
    }
    if let Some(conditions) = conditions {
        status.insert("conditions", Value::Array(conditions));
    }
}

/// Removes the annotations of version 1.
pub(super) fn drop_annotations(map: &mut Map) {
    let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    let Some(annotations) = metadata
        .get_mut("annotations")
        .and_then(Value::as_object_mut)
    else {
        return;
    };
    let mut found = false;
    for key in ANNOTATIONS {
        found |= annotations.remove(key).is_some();
    }
    if found && annotations.is_empty() {
        metadata.remove("annotations");
    }
}

#[cfg(test)]
mod tests;

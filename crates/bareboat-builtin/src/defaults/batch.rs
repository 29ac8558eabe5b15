//! Defaults of jobs, CronJobs and autoscalers.

use super::{pod_template, spec};
use crate::reach::{Fill, Reach};
use bareboat_api::{Map, Value, value};

/// Sets the defaults of Job.
pub(crate) fn job(object: &mut Value) {
    let labels = object
        .members(&["spec", "template", "metadata", "labels"])
        .filter(|labels| !labels.is_empty())
        .cloned();
    let map = object.make_object();
    let spec = map.object_mut("spec");
    pod_template(spec.object_mut("template"));
    if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
        spec.fill("completions", 1);
    }
    spec.fill("parallelism", 1);
    let per_index = spec.contains_key("backoffLimitPerIndex");
    spec.fill("backoffLimit", if per_index { i32::MAX } else { 6 });
    spec.fill("completionMode", "NonIndexed");
    spec.fill("suspend", false);
    let by_policy = spec.contains_key("podFailurePolicy");
    let replacement = if by_policy {
        "Failed"
    } else {
        "TerminatingOrFailed"
    };
    spec.fill("podReplacementPolicy", replacement);
    spec.fill("manualSelector", false);
    failure_policy(spec);
    if let Some(labels) = labels {
        map.object_mut("metadata").fill("labels", labels);
    }
}

fn failure_policy(spec: &mut Map) {
    let Some(policy) = spec.sub("podFailurePolicy") else {
        return;
    };
    for rule in policy.each("rules") {
        for pattern in rule.each("onPodConditions") {
            if pattern.get_str("status").unwrap_or("").is_empty() {
                pattern.insert("status", "True".into());
            }
        }
    }
}

/// Sets the defaults of CronJob. Defaults of its jobs are set when they are created.
pub(crate) fn cron_job(object: &mut Value) {
    let spec = spec(object);
    spec.fill("concurrencyPolicy", "Allow");
    spec.fill("suspend", false);
    spec.fill("successfulJobsHistoryLimit", 3);
    spec.fill("failedJobsHistoryLimit", 1);
    let job = spec.object_mut("jobTemplate").object_mut("spec");
    pod_template(job.object_mut("template"));
    failure_policy(job);
}

/// Sets the defaults of HorizontalPodAutoscaler `v2`.
pub(crate) fn autoscaler_v2(object: &mut Value) {
    let spec = spec(object);
    spec.fill("minReplicas", 1);
    spec.fill(
        "metrics",
        value!([{"type": "Resource", "resource": {"name": "cpu",
            "target": {"type": "Utilization", "averageUtilization": 80}}}]),
    );
    let Some(behavior) = spec.sub("behavior") else {
        return;
    };
    let up = behavior.object_mut("scaleUp");
    up.fill("stabilizationWindowSeconds", 0);
    up.fill("selectPolicy", "Max");
    unset(
        up,
        "policies",
        value!([{"type": "Pods", "value": 4, "periodSeconds": 15},
                {"type": "Percent", "value": 100, "periodSeconds": 15}]),
    );
    let down = behavior.object_mut("scaleDown");
    down.fill("selectPolicy", "Max");
    unset(
        down,
        "policies",
        value!([{"type": "Percent", "value": 100, "periodSeconds": 15}]),
    );
}

/// Sets a member unless it is present; an empty list counts as present and is validated.
fn unset(rules: &mut Map, member: &str, value: Value) {
    if rules.get(member).is_none_or(Value::is_null) {
        rules.insert(member, value);
    }
}

/// Sets the defaults of HorizontalPodAutoscaler `v1`, which has one metric.
pub(crate) fn autoscaler_v1(object: &mut Value) {
    const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
    let has_annotation = object.at(&["metadata", "annotations", METRICS]).is_some();
    let spec = spec(object);
    spec.fill("minReplicas", 1);
    if !has_annotation {
        spec.fill("targetCPUUtilizationPercentage", 80);
    }
    // The annotations that hold `v2` fields are normalized too.
    let said = std::mem::take(object);
    *object = crate::strategies::normal_autoscaler(said);
}

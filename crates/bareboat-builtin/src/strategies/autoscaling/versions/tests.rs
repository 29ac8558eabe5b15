//! Tests of conversion between autoscaler versions.

use super::{BEHAVIOR, CONDITIONS, CURRENT, METRICS, convert};
use crate::reach::Reach;
use bareboat_api::{Value, value};

fn newer() -> Value {
    value!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "D", "name": "x"},
            "behavior": {"scaleUp": {"selectPolicy": "Max", "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}]}},
            "metrics": [
                {"type": "Pods", "pods": {"metric": {"name": "m", "selector": {"matchLabels": {"a": "b"}}}, "target": {"type": "AverageValue", "averageValue": "1"}}},
                {"type": "Object", "object": {"describedObject": {"kind": "K", "name": "n", "apiVersion": "g/v1"}, "metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "2"}}},
                {"type": "External", "external": {"metric": {"name": "m"}, "target": {"type": "Value", "value": "3"}}},
                {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c", "target": {"type": "Utilization", "averageUtilization": 50}}},
                {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]},
        "status": {"desiredReplicas": 0,
            "conditions": [{"type": "AbleToScale", "status": "True", "lastTransitionTime": "2019-01-01T00:00:00Z", "reason": "r", "message": "m"}],
            "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 30, "averageValue": "10m"}}}]}})
}

#[test]
fn versions_convert_without_loss() {
    let older = convert(newer(), "autoscaling/v1", None).expect("version 1");
    let number = |path: &[&str]| older.int(path);
    assert_eq!(
        number(&["spec", "targetCPUUtilizationPercentage"]),
        Some(80)
    );
    assert_eq!(
        number(&["status", "currentCPUUtilizationPercentage"]),
        Some(30)
    );
    let back = convert(older, "autoscaling/v2", None).expect("version 2");
    assert_eq!(back, newer());
    assert!(convert(newer(), "autoscaling/v9", None).is_err());
}

#[test]
fn version_1_keeps_other_fields_in_annotations() {
    let older = convert(newer(), "autoscaling/v1", None).expect("version 1");
    let note = |key: &str| older.text(&["metadata", "annotations", key]).to_owned();
    assert_eq!(
        note(METRICS),
        r#"[{"type":"Pods","pods":{"metricName":"m","targetAverageValue":"1","selector":{"matchLabels":{"a":"b"}}}},{"type":"Object","object":{"target":{"kind":"K","name":"n","apiVersion":"g/v1"},"metricName":"m","targetValue":"0","averageValue":"2"}},{"type":"External","external":{"metricName":"m","targetValue":"3"}},{"type":"ContainerResource","containerResource":{"name":"cpu","targetAverageUtilization":50,"container":"c"}}]"#
    );
    assert_eq!(
        note(CURRENT),
        r#"[{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":30,"currentAverageValue":"10m"}}]"#
    );
    assert_eq!(
        note(CONDITIONS),
        r#"[{"type":"AbleToScale","status":"True","lastTransitionTime":"2019-01-01T00:00:00Z","reason":"r","message":"m"}]"#
    );
    assert_eq!(
        note(BEHAVIOR),
        r#"{"ScaleUp":{"StabilizationWindowSeconds":null,"SelectPolicy":"Max","Policies":[{"Type":"Pods","Value":4,"PeriodSeconds":15}],"Tolerance":null},"ScaleDown":null}"#
    );
}

#[test]
fn unreadable_annotations_are_dropped() {
    for note in ["{", "5", "[5]", "{\"scaleUp\":[]}", "null"] {
        let older = value!({"apiVersion": "autoscaling/v1", "metadata": {"annotations":
            {(METRICS): (note), (CURRENT): (note), (CONDITIONS): (note), (BEHAVIOR): (note)}}, "spec": {"maxReplicas": 1}});
        let newer = convert(older, "autoscaling/v2", None).expect("version 2");
        let wanted = value!({"apiVersion": "autoscaling/v2", "metadata": {}, "spec": {"maxReplicas": 1}, "status": {"currentMetrics": null}});
        assert_eq!(newer, wanted, "{note}");
    }
}

//! Tests of LimitRange defaults and bounds.

use super::*;
use bareboat_api::value;

fn range(limits: Value) -> Value {
    let mut range = value!({"spec": {}});
    let spec = range.make_object().object_mut("spec");
    spec.insert("limits", limits);
    range
}

fn pod(containers: Value) -> Object {
    let mut pod = Object::new("v1", "Pod", "p");
    let spec = pod.map_mut().object_mut("spec");
    spec.insert("containers", containers);
    pod
}

#[test]
fn containers_get_default_requests_and_limits() {
    let range = range(value!([
        {"type": "Container", "default": {"cpu": "1", "memory": "1Gi"}, "defaultRequest": {"cpu": "100m"}},
        {"type": "Pod", "max": {"cpu": "4"}},
    ]));
    let mut pod = pod(value!([
        {"name": "a"},
        {"name": "b", "resources": {"limits": {"cpu": "2"}, "requests": {"cpu": "2"}}},
    ]));
    fill(&mut pod, &range);
    assert_eq!(
        pod.annotation(ANNOTATION),
        Some(
            "LimitRanger plugin set: cpu request for container a; cpu, memory limit for container a; \
             memory limit for container b"
        )
    );
    let expected = value!([
        {"name": "a", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m"}}},
        {"name": "b", "resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "2"}}},
    ]);
    assert_eq!(pod.at(&["spec", "containers"]), Some(&expected));
}

#[test]
fn a_pod_with_all_values_set_is_unchanged() {
    let range = range(value!([{"type": "Container", "default": {"cpu": "1"}}]));
    let mut pod = pod(value!([{"name": "b", "resources": {"limits": {"cpu": "2"}}}]));
    let before = pod.clone();
    fill(&mut pod, &range);
    assert_eq!(pod.value(), before.value());
}

#[test]
fn values_out_of_bounds_are_reported_with_upstream_texts() {
    let container = |resources: Value| value!([{"name": "c", "resources": resources}]);
    let cases: &[(Value, Value, &[&str])] = &[
        (
            value!({"type": "Container", "min": {"cpu": "100m"}}),
            container(value!({})),
            &["minimum cpu usage per Container is 100m.  No request is specified"],
        ),
        (
            value!({"type": "Container", "min": {"cpu": "100m"}}),
            container(value!({"requests": {"cpu": "50m"}})),
            &["minimum cpu usage per Container is 100m, but request is 50m"],
        ),
        (
            value!({"type": "Container", "max": {"memory": "1Gi"}}),
            container(value!({"requests": {"memory": "1Gi"}})),
            &["maximum memory usage per Container is 1Gi.  No limit is specified"],
        ),
        (
            value!({"type": "Container", "max": {"memory": "1Gi"}}),
            container(value!({"limits": {"memory": "2Gi"}})),
            &["maximum memory usage per Container is 1Gi, but limit is 2Gi"],
        ),
        (
            value!({"type": "Container", "max": {"memory": "1Gi"}}),
            container(value!({"limits": {"memory": "1Gi"}, "requests": {"memory": "2Gi"}})),
            &["maximum memory usage per Container is 1Gi, but request is 2Gi"],
        ),
        (
            value!({"type": "Pod", "maxLimitRequestRatio": {"cpu": "2"}}),
            container(value!({"limits": {"cpu": "1"}, "requests": {"cpu": "300m"}})),
            &["cpu max limit to request ratio per Pod is 2, but provided ratio is 3.333333"],
        ),
        (
            value!({"type": "Pod", "maxLimitRequestRatio": {"cpu": "2"}}),
            container(value!({"limits": {"cpu": "1"}})),
            &[
                "cpu max limit to request ratio per Pod is 2, but no request is specified or request is 0",
            ],
        ),
        (
            value!({"type": "Pod", "max": {"cpu": "1", "memory": "1Gi"}, "min": {"cpu": "1m"}}),
            container(value!({"limits": {"cpu": "2"}, "requests": {"cpu": "1"}})),
            &[
                "maximum cpu usage per Pod is 1, but limit is 2",
                "maximum memory usage per Pod is 1Gi.  No limit is specified",
            ],
        ),
        (
            value!({"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "1"}, "maxLimitRequestRatio": {"cpu": "1.5"}}),
            container(value!({"limits": {"cpu": "1500m"}, "requests": {"cpu": "1"}})),
            &[],
        ),
    ];
    for (limit, containers, expected) in cases {
        let range = range(Value::Array(vec![limit.clone()]));
        let problems = pod_problems(&range, pod(containers.clone()).value());
        assert_eq!(problems, *expected, "{limit:?}");
    }
}

#[test]
fn claims_are_limited_by_their_requests() {
    let range = range(value!([
        {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}},
    ]));
    for (storage, expected) in [
        (
            "512Mi",
            Some("minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 512Mi"),
        ),
        ("1Gi", None),
        (
            "3Gi",
            Some("maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi"),
        ),
    ] {
        let claim = value!({"spec": {"resources": {"requests": {"storage": storage}}}});
        let problems = claim_problems(&range, &claim);
        assert_eq!(problems.first().map(String::as_str), expected, "{storage}");
    }
}

//! Tests of normalization to built-in types.

use super::*;
use crate::facts;
use bareboat_api::value;

fn conformed(kind: (&str, &str, &str), body: Value) -> Result<(Value, Vec<String>), String> {
    let message = facts::kind(kind.0, kind.1, kind.2).expect("a known kind");
    let mut body = body;
    let mut findings = Vec::new();
    conform(&message, &mut body, Empties::Null, &mut findings)
        .map_err(|error| error.to_string())?;
    Ok((body, findings))
}

#[test]
fn a_body_is_normalized_like_a_round_trip_through_go() {
    let (pod, findings) = conformed(
        ("", "v1", "Pod"),
        value!({"metadata": {"name": "a", "labels": null, "creationTimestamp": null, "bogus": 1},
            "spec": {"containers": [{"name": "c", "env": [], "tty": false, "resources": {"limits": {"cpu": "1000m", "memory": 1024}}, "foo": 1}],
                     "volumes": [{"name": "v", "emptyDir": {}}], "hostNetwork": false, "terminationGracePeriodSeconds": 0, "securityContext": {}}}),
    )
    .expect("a pod");
    assert_eq!(
        pod,
        value!({"metadata": {"name": "a"},
            "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "1", "memory": "1024"}}}],
                     "volumes": [{"name": "v", "emptyDir": {}}], "terminationGracePeriodSeconds": 0, "securityContext": {}},
            "status": {}})
    );
    assert_eq!(
        findings,
        [
            r#"unknown field "metadata.bogus""#,
            r#"unknown field "spec.containers[0].foo""#
        ]
    );
}

#[test]
fn members_that_are_always_printed_are_added() {
    let (event, _) = conformed(("", "v1", "Event"), value!({})).expect("an event");
    assert_eq!(
        event,
        value!({"metadata": {}, "involvedObject": {}, "source": {}, "firstTimestamp": null, "lastTimestamp": null,
            "eventTime": null, "reportingComponent": "", "reportingInstance": ""})
    );
    let (role, _) = conformed(
        ("rbac.authorization.k8s.io", "v1", "ClusterRole"),
        value!({"rules": []}),
    )
    .expect("a role");
    assert_eq!(role, value!({"metadata": {}, "rules": null}));
}

#[test]
fn type_mismatches_are_reported_with_their_path() {
    let check = |kind, body, expected: &str| {
        let error = conformed(kind, body).expect_err("it does not fit");
        assert_eq!(error, expected);
    };
    check(
        ("apps", "v1", "Deployment"),
        value!({"spec": {"replicas": "three"}}),
        r#"spec.replicas: expected an integer, found the string "three""#,
    );
    check(
        ("", "v1", "Secret"),
        value!({"data": {"a": "%"}}),
        r#"data.a: expected base64 text, found the string "%""#,
    );
    check(
        ("", "v1", "Pod"),
        value!({"spec": {"containers": [{"ports": [{"containerPort": 4294967296.0}]}]}}),
        "spec.containers[0].ports[0].containerPort: expected an integer, found the number 4294967296",
    );
    check(
        ("", "v1", "Pod"),
        value!([]),
        "expected an object, found a list",
    );
    check(
        ("coordination.k8s.io", "v1", "Lease"),
        value!({"spec": {"renewTime": "2024-01-01T00:00:00Z"}}),
        r#"spec.renewTime: expected a time such as "2006-01-02T15:04:05.000000Z", found the string "2024-01-01T00:00:00Z""#,
    );
}

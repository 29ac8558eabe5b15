//! Tests of quota usage.

use super::*;
use bareboat_api::admission::Operation;
use bareboat_api::value;

fn meter(group: &str, plural: &str) -> Meter {
    Meter::of(group, plural).expect("it is counted")
}

fn pod(spec: Value) -> Value {
    let mut pod = value!({"metadata": {"name": "p"}});
    pod.make_object().insert("spec", spec);
    pod
}

#[test]
fn usage_depends_on_the_kind() {
    let cases: &[(&str, &str, Value, &str)] = &[
        (
            "apps",
            "deployments",
            value!({}),
            "count/deployments.apps=1",
        ),
        (
            "example.com",
            "foos",
            value!({}),
            "count/foos.example.com=1",
        ),
        ("", "secrets", value!({}), "count/secrets=1,secrets=1"),
        (
            "",
            "services",
            value!({"spec": {"type": "NodePort", "ports": [{"port": 1}, {"port": 2}]}}),
            "count/services=1,services=1,services.loadbalancers=0,services.nodeports=2",
        ),
        (
            "",
            "services",
            value!({"spec": {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false,
                "ports": [{"port": 1}, {"port": 2, "nodePort": 30000}]}}),
            "count/services=1,services=1,services.loadbalancers=1,services.nodeports=1",
        ),
        (
            "",
            "persistentvolumeclaims",
            value!({"spec": {"storageClassName": "gold", "resources": {"requests": {"storage": "1.5"}}},
                "status": {"allocatedResources": {"storage": "1Gi"}}}),
            "count/persistentvolumeclaims=1,gold.storageclass.storage.k8s.io/persistentvolumeclaims=1,\
             gold.storageclass.storage.k8s.io/requests.storage=1Gi,persistentvolumeclaims=1,requests.storage=1Gi",
        ),
        (
            "resource.k8s.io",
            "resourceclaims",
            value!({"spec": {"devices": {"requests": [
                {"exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}},
                {"firstAvailable": [
                    {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1},
                    {"deviceClassName": "gpu", "allocationMode": "All"},
                ]},
            ]}}}),
            "count/resourceclaims.resource.k8s.io=1,gpu.deviceclass.resource.k8s.io/devices=34",
        ),
        (
            "",
            "pods",
            pod(value!({"containers": [{"name": "c", "resources": {
                "requests": {"cpu": "1", "hugepages-2Mi": "4Mi", "example.com/gpu": "2", "storage": "1"},
                "limits": {"cpu": "2", "memory": "1Gi"},
            }}]})),
            "count/pods=1,cpu=1,hugepages-2Mi=4Mi,limits.cpu=2,limits.memory=1Gi,pods=1,requests.cpu=1,\
             requests.example.com/gpu=2,requests.hugepages-2Mi=4Mi",
        ),
        (
            "",
            "pods",
            value!({"spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}, "status": {"phase": "Failed"}}),
            "count/pods=1",
        ),
    ];
    for (group, plural, object, expected) in cases {
        let meter = meter(group, plural);
        let usage = meter.usage(object);
        assert_eq!(usage.to_string(), *expected, "{group}/{plural}");
        for (name, _) in usage.iter() {
            assert!(meter.covers(name), "{group}/{plural} covers {name}");
        }
    }
}

#[test]
fn kinds_that_are_not_stored_are_not_counted() {
    for (group, plural) in [
        ("", "events"),
        ("events.k8s.io", "events"),
        ("authorization.k8s.io", "localsubjectaccessreviews"),
    ] {
        assert_eq!(Meter::of(group, plural), None, "{group}/{plural}");
    }
}

#[test]
fn scopes_select_pods() {
    let plain = pod(value!({"containers": [{"name": "c"}]}));
    let urgent = pod(value!({
        "activeDeadlineSeconds": 5, "priorityClassName": "high",
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "podAffinityTerm": {"topologyKey": "k", "namespaceSelector": {}}},
        ]}},
    }));
    let selector = |scope: &str, operator: &str, values: Value| {
        value!({"scopeSelector": {"matchExpressions": [
            {"scopeName": scope, "operator": operator, "values": values},
        ]}})
    };
    let cases = [
        (value!({"scopes": ["Terminating"]}), false, true),
        (value!({"scopes": ["NotTerminating"]}), true, false),
        (value!({"scopes": ["BestEffort"]}), true, false),
        (
            value!({"scopes": ["NotBestEffort", "Terminating"]}),
            false,
            true,
        ),
        (
            value!({"scopes": ["CrossNamespacePodAffinity"]}),
            false,
            true,
        ),
        (value!({"scopes": ["PriorityClass"]}), false, true),
        (
            selector("PriorityClass", "In", value!(["high", "low"])),
            false,
            true,
        ),
        (
            selector("PriorityClass", "NotIn", value!(["high"])),
            true,
            false,
        ),
        (
            selector("PriorityClass", "DoesNotExist", value!([])),
            true,
            false,
        ),
        (value!({"scopes": ["VolumeAttributesClass"]}), false, false),
        (value!({"scopes": ["Unheard"]}), false, false),
    ];
    let pods = meter("", "pods");
    for (mut spec, of_plain, of_urgent) in cases {
        let text = String::from_utf8(spec.to_json()).expect("JSON is text");
        spec.make_object().insert("hard", value!({"pods": "1"}));
        let quota = Quota::read(&value!({"spec": spec}));
        assert_eq!(quota.counts(&pods, &plain), of_plain, "plain, {text}");
        assert_eq!(quota.counts(&pods, &urgent), of_urgent, "urgent, {text}");
        assert!(!quota.counts(&meter("", "secrets"), &plain), "{text}");
    }
}

#[test]
fn volume_attributes_classes_select_claims() {
    let quota = Quota::read(&value!({"spec": {
        "hard": {"requests.storage": "1Gi"},
        "scopeSelector": {"matchExpressions": [
            {"scopeName": "VolumeAttributesClass", "operator": "In", "values": ["fast"]},
        ]},
    }}));
    let claims = meter("", "persistentvolumeclaims");
    for (claim, counts) in [
        (
            value!({"spec": {"volumeAttributesClassName": "fast"}}),
            true,
        ),
        (
            value!({"spec": {}, "status": {"modifyVolumeStatus": {"targetVolumeAttributesClassName": "fast"}}}),
            true,
        ),
        (
            value!({"spec": {"volumeAttributesClassName": "slow"}}),
            false,
        ),
        (value!({"spec": {}}), false),
    ] {
        assert_eq!(quota.counts(&claims, &claim), counts, "{claim:?}");
    }
}

#[test]
fn containers_must_specify_limited_resources() {
    let quota = Quota::read(&value!({"spec": {
        "hard": {"limits.cpu": "1", "requests.memory": "1Gi", "requests.ephemeral-storage": "1Gi"},
    }}));
    let pods = meter("", "pods");
    let lacking = pod(value!({
        "containers": [
            {"name": "b", "resources": {"requests": {"memory": "1"}}},
            {"name": "a", "resources": {"limits": {"cpu": "1"}, "requests": {"memory": "1"}}},
        ],
        "initContainers": [{"name": "i"}],
    }));
    assert_eq!(
        quota.missing(&pods, &lacking).as_deref(),
        Some("must specify limits.cpu for: b,i; requests.memory for: i")
    );
    let whole =
        pod(value!({"containers": [{"name": "b"}], "resources": {"requests": {"cpu": "1"}}}));
    assert_eq!(quota.missing(&pods, &whole), None);
}

#[test]
fn only_writes_that_can_change_usage_are_measured() {
    let short = pod(value!({"activeDeadlineSeconds": 1}));
    let long = pod(value!({}));
    let pods = meter("", "pods");
    for (operation, part, new, old, expected) in [
        (Operation::Create, "", &long, None, true),
        (Operation::Update, "", &short, Some(&long), true),
        (Operation::Update, "", &long, Some(&long), false),
        (Operation::Update, "resize", &long, Some(&long), true),
        (Operation::Update, "status", &long, Some(&long), false),
        (Operation::Create, "eviction", &long, None, false),
    ] {
        let seen = pods.handles(operation, part, new, old);
        assert_eq!(seen, expected, "{} {part}", operation.name());
    }
    let secrets = meter("", "secrets");
    assert!(!secrets.handles(Operation::Update, "", &long, Some(&long)));
}

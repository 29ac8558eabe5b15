//! Validation, updates and conversion of kinds, case by case, with upstream's texts.

use bareboat_api::kind::{Conversion, Kind, User, WriteContext};
use bareboat_api::{Object, Value, value};
use bareboat_builtin::{kinds, services};
use std::time::Instant;

fn kind(resource: &str) -> Kind {
    let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
    let kind = kinds::find(group, plural).unwrap_or_else(|| panic!("no kind {resource}"));
    match resource {
        "services" => {
            let claims = services::Claims::new(services::ServiceRanges::default());
            services::allocating(kind, &claims)
        }
        _ => kind,
    }
}

/// Returns a body after decoding.
fn decoded(kind: &Kind, version: &str, body: &Value) -> Object {
    let mut body = body.clone();
    let shape = &kind.version(version).unwrap().shape;
    shape.conform(&mut body, &mut Vec::new()).unwrap();
    shape.default(&mut body).unwrap();
    Object::try_from(body).unwrap()
}

fn context<'a>(user: &'a User, version: &'a str, part: Option<&'a str>) -> WriteContext<'a> {
    WriteContext {
        subresource: part,
        user,
        now: "2026-01-01T00:00:00Z",
        version,
        dry_run: false,
    }
}

fn created(kind: &Kind, body: &Value) -> (Object, Vec<String>) {
    let version = kind.versions[0].name.clone();
    let mut object = decoded(kind, &version, body);
    let user = User::default();
    let ctx = context(&user, &version, None);
    kind.strategy.prepare_create(&mut object, &ctx);
    if let Err(status) = kind.strategy.reserve(&mut object, None, &ctx) {
        return (object, vec![status.message]);
    }
    let wrong = kind.strategy.validate_create(&object, &ctx);
    (object, wrong.iter().map(ToString::to_string).collect())
}

fn updated(kind: &Kind, old: &Object, body: &Value, part: Option<&str>) -> (Object, Vec<String>) {
    let version = kind.versions[0].name.clone();
    let mut object = decoded(kind, &version, body);
    let user = User::default();
    let ctx = context(&user, &version, part);
    kind.strategy.prepare_update(&mut object, old, &ctx);
    if let Err(status) = kind.strategy.reserve(&mut object, Some(old), &ctx) {
        return (object, vec![status.message]);
    }
    let wrong = kind.strategy.validate_update(&object, old, &ctx);
    (object, wrong.iter().map(ToString::to_string).collect())
}

#[test]
fn invalid_new_objects_are_rejected_with_upstream_texts() {
    let pod = |spec: Value| value!({"metadata": {"name": "a", "namespace": "n"}, "spec": (spec)});
    let cases: Vec<(&str, Value, &[&str])> = vec![
        (
            "secrets",
            value!({"metadata": {"name": "a"}, "type": "kubernetes.io/tls", "data": {"tls.crt": "", "b d": ""}}),
            &[
                "data[b d]: Invalid value: \"b d\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
                "data[tls.key]: Required value",
            ],
        ),
        (
            "secrets",
            value!({"metadata": {"name": "a"}, "type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": "[]"}}),
            &[
                "data[.dockerconfigjson]: Invalid value: \"<secret contents redacted>\": must be a JSON object",
            ],
        ),
        (
            "configmaps",
            value!({"metadata": {"name": "a"}, "data": {"k": "v"}, "binaryData": {"k": ""}}),
            &["data[k]: Invalid value: \"k\": duplicate of key present in binaryData"],
        ),
        (
            "events",
            value!({"metadata": {"name": "a", "namespace": "n"}, "involvedObject": {"namespace": "other"}}),
            &["involvedObject.namespace: Invalid value: \"other\": does not match event.namespace"],
        ),
        (
            "events.events.k8s.io",
            value!({"metadata": {"name": "a", "namespace": "default"}, "regarding": {"kind": "Node"}, "type": "Odd"}),
            &[
                "eventTime: Required value",
                "type: Invalid value: \"\": has invalid value: Odd",
            ],
        ),
        (
            "leases.coordination.k8s.io",
            value!({"metadata": {"name": "a"}, "spec": {"leaseDurationSeconds": 0, "leaseTransitions": (-1)}}),
            &[
                "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
                "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
            ],
        ),
        (
            "pods",
            pod(
                value!({"containers": [{"name": "c", "image": " x", "volumeMounts": [{"name": "v", "mountPath": "/a"}],
                "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}}]}),
            ),
            &[
                "spec.containers[0].image: Invalid value: \" x\": must not have leading or trailing whitespace",
                "spec.containers[0].volumeMounts[0].name: Not found: \"v\"",
                "spec.containers[0].resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1",
            ],
        ),
        (
            "pods",
            pod(
                value!({"containers": [{"name": "c", "image": "x", "livenessProbe": {}}], "restartPolicy": "Sometimes"}),
            ),
            &[
                "spec.containers[0].livenessProbe: Required value: must specify a handler type",
                "spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"OnFailure\", \"Never\"",
            ],
        ),
        (
            "cronjobs.batch",
            value!({"metadata": {"name": "a"}, "spec": {"schedule": "nope", "jobTemplate": {"spec": {"template": {"spec": {
                "restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}}}}}),
            &["spec.schedule: Invalid value: \"nope\": expected exactly 5 fields, found 1: [nope]"],
        ),
        (
            "roles.rbac.authorization.k8s.io",
            value!({"metadata": {"name": "a"}, "rules": [{"verbs": [], "nonResourceURLs": ["/x"]}]}),
            &[
                "rules[0].verbs: Required value: verbs must contain at least one value",
                "rules[0].nonResourceURLs: Invalid value: [\"/x\"]: namespaced rules cannot apply to non-resource URLs",
            ],
        ),
        (
            "persistentvolumeclaims",
            value!({"metadata": {"name": "a"}, "spec": {}}),
            &[
                "spec.accessModes: Required value: at least 1 access mode is required",
                "spec.resources[storage]: Required value",
            ],
        ),
        (
            "poddisruptionbudgets.policy",
            value!({"metadata": {"name": "a"}, "spec": {"minAvailable": "101%"}}),
            &["spec.minAvailable: Invalid value: \"101%\": must not be greater than 100%"],
        ),
        (
            "priorityclasses.scheduling.k8s.io",
            value!({"metadata": {"name": "a"}, "value": 2000000000}),
            &["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"],
        ),
        (
            "apiservices.apiregistration.k8s.io",
            value!({"metadata": {"name": "a"}, "spec": {"group": "g.example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1}}),
            &[
                "metadata.name: Invalid value: \"a\": must be `spec.version+\".\"+spec.group`: \"v1.g.example.com\"",
            ],
        ),
        (
            "ingresses.networking.k8s.io",
            value!({"metadata": {"name": "a"}, "spec": {"rules": [{"host": "1.2.3.4", "http": {"paths": [{"backend": {}}]}}]}}),
            &[
                "spec.rules[0].host: Invalid value: \"1.2.3.4\": must be a DNS name, not an IP address",
                "spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified",
            ],
        ),
    ];
    for (resource, body, expected) in cases {
        let (_, wrong) = created(&kind(resource), &body);
        assert_eq!(wrong, expected, "{resource} {body}");
    }
}

#[test]
fn immutable_fields_cannot_change() {
    let workload = |labels: &str, image: &str| {
        value!({"metadata": {"name": "a"}, "spec": {"serviceName": "s", "selector": {"matchLabels": {"a": labels}},
            "template": {"metadata": {"labels": {"a": labels}}, "spec": {"containers": [{"name": "c", "image": image}]}}}})
    };
    let pod = |image: &str, name: &str| value!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": name, "image": image}]}});
    let cases: Vec<(&str, Value, Value, &[&str])> = vec![
        (
            "deployments.apps",
            workload("x", "i"),
            workload("x", "j"),
            &[],
        ),
        (
            "deployments.apps",
            workload("x", "i"),
            workload("y", "i"),
            &["spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"y\"}}: field is immutable"],
        ),
        (
            "statefulsets.apps",
            workload("x", "i"),
            workload("y", "i"),
            &[
                "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
            ],
        ),
        ("pods", pod("i:1", "c"), pod("j:1", "c"), &[]),
        (
            "pods",
            pod("i:1", "c"),
            pod("i:1", "d"),
            &[
                "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
            ],
        ),
        (
            "secrets",
            value!({"metadata": {"name": "a"}, "immutable": true, "stringData": {"k": "v"}}),
            value!({"metadata": {"name": "a"}, "type": "Other", "data": {"k": "dg=="}}),
            &[
                "type: Invalid value: \"Other\": field is immutable",
                "immutable: Forbidden: field is immutable when `immutable` is set",
            ],
        ),
        (
            "clusterrolebindings.rbac.authorization.k8s.io",
            value!({"metadata": {"name": "a"}, "roleRef": {"kind": "ClusterRole", "name": "x"}}),
            value!({"metadata": {"name": "a"}, "roleRef": {"kind": "ClusterRole", "name": "y"}}),
            &[
                "roleRef: Invalid value: {\"apiGroup\":\"rbac.authorization.k8s.io\",\"kind\":\"ClusterRole\",\"name\":\"y\"}: cannot change roleRef",
            ],
        ),
        (
            "persistentvolumeclaims",
            value!({"metadata": {"name": "a"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}}),
            value!({"metadata": {"name": "a"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
            &[
                "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
                "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity",
            ],
        ),
        (
            "services",
            value!({"metadata": {"name": "a"}, "spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 80}]}}),
            value!({"metadata": {"name": "a"}, "spec": {"clusterIP": "10.0.0.2", "clusterIPs": ["10.0.0.2"], "ports": [{"port": 80}]}}),
            &["spec.clusterIPs[0]: Invalid value: [\"10.0.0.2\"]: may not change once set"],
        ),
    ];
    for (resource, old, new, expected) in cases {
        let kind = kind(resource);
        let (old, wrong) = created(&kind, &old);
        assert_eq!(wrong, Vec::<String>::new(), "{resource}");
        let (_, wrong) = updated(&kind, &old, &new, None);
        assert_eq!(wrong, expected, "{resource} {new}");
    }
}

#[test]
fn an_update_of_a_service_keeps_omitted_values() {
    let kind = kind("services");
    let (old, _) = created(
        &kind,
        &value!({"metadata": {"name": "a"}, "spec": {"type": "NodePort", "clusterIP": "10.0.0.1", "ports": [{"port": 80, "nodePort": 30080}]}}),
    );
    let plain =
        value!({"metadata": {"name": "a"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    let (new, wrong) = updated(&kind, &old, &plain, None);
    assert_eq!(wrong, Vec::<String>::new());
    assert_eq!(new.get("spec"), old.get("spec"));
    let outside = value!({"metadata": {"name": "a"}, "spec": {"type": "ExternalName", "externalName": "example.com", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"]}});
    let (new, wrong) = updated(&kind, &old, &outside, None);
    assert_eq!(wrong, Vec::<String>::new());
    assert_eq!(new.at(&["spec", "clusterIP"]), None);
}

#[test]
fn a_namespace_stays_until_it_is_finalized() {
    let kind = kind("namespaces");
    let (mut object, _) = created(&kind, &value!({"metadata": {"name": "a"}}));
    let user = User::default();
    let ctx = context(&user, "v1", None);
    assert!(kind.strategy.begin_delete(&mut object, &ctx));
    assert_eq!(
        object.at(&["status", "phase"]),
        Some(&value!("Terminating"))
    );
    let mut body = object.value().clone();
    body.at_mut(&["spec"])
        .unwrap()
        .make_object()
        .remove("finalizers");
    let (kept, _) = updated(&kind, &object, &body, None);
    assert!(kind.strategy.holds_back_deletion(&kept));
    let (finalized, _) = updated(&kind, &object, &body, Some("finalize"));
    assert!(!kind.strategy.holds_back_deletion(&finalized));
    let protected = Object::new("v1", "Namespace", "kube-system");
    assert!(kind.strategy.forbid_delete(&protected).is_some());
}

#[test]
fn events_of_both_groups_convert() {
    let newer = kind("events.events.k8s.io");
    let core = kind("events");
    assert_eq!(newer.store, core.store);
    let Conversion::Pure(convert) = &newer.conversion else {
        panic!("events are converted by a function");
    };
    let event = decoded(
        &newer,
        "v1",
        &value!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "a"}, "eventTime": "2024-01-01T00:00:00.000000Z",
            "reportingController": "c", "reportingInstance": "i", "regarding": {"name": "x"}, "note": "n", "deprecatedCount": 2}),
    );
    let event: Value = event.into();
    let stored = convert(event.clone(), "v1", None).unwrap();
    let as_core = decoded(&core, "v1", &stored);
    assert_eq!(
        Value::from(as_core),
        stored,
        "a converted event has the core group's form"
    );
    assert_eq!(stored.at(&["involvedObject", "name"]), Some(&value!("x")));
    assert_eq!(stored.at(&["count"]), Some(&value!(2)));
    assert_eq!(convert(stored, "events.k8s.io/v1", None).unwrap(), event);
}

#[test]
fn a_certificate_request_records_the_authenticated_user() {
    let kind = kind("certificatesigningrequests.certificates.k8s.io");
    let body = value!({"metadata": {"name": "a"}, "spec": {"request": "AA==", "signerName": "example.com/s", "usages": ["client auth"], "username": "root"}});
    let mut object = decoded(&kind, "v1", &body);
    let user = User {
        name: "me".into(),
        groups: vec!["g".into()],
        ..User::default()
    };
    let ctx = context(&user, "v1", None);
    kind.strategy.prepare_create(&mut object, &ctx);
    assert_eq!(object.at(&["spec", "username"]), Some(&value!("me")));
    assert_eq!(object.at(&["spec", "groups"]), Some(&value!(["g"])));
    let mut approved = object.value().clone();
    approved.make_object().insert(
        "status",
        value!({"conditions": [{"type": "Approved", "status": "True"}], "certificate": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg=="}),
    );
    let (by_status, wrong) = updated(&kind, &object, &approved, Some("status"));
    assert_eq!(
        wrong,
        ["status.conditions: Forbidden: updates may not add a condition of type \"Approved\""]
    );
    assert!(by_status.at(&["status", "certificate"]).is_some());
    let (by_approval, wrong) = updated(&kind, &object, &approved, Some("approval"));
    assert_eq!(wrong, Vec::<String>::new());
    assert!(by_approval.at(&["status", "certificate"]).is_none());
}

#[test]
fn hostile_bodies_cost_no_more_than_their_size() {
    let started = Instant::now();
    let many = |item: fn(usize) -> Value| (0..50_000).map(item).collect::<Value>();
    let ports = many(|_| value!({}));
    let (_, wrong) = created(
        &kind("services"),
        &value!({"metadata": {"name": "a"}, "spec": {"ports": (ports)}}),
    );
    assert!(wrong.len() <= 1000);
    let containers = many(|index| value!({"name": (format!("c{index}")), "image": "x"}));
    let tolerations = many(|index| value!({"key": (format!("k{index}")), "operator": "Exists"}));
    let body = value!({"metadata": {"name": "a"}, "spec": {"containers": (containers), "tolerations": (tolerations)}});
    let pods = kind("pods");
    let (pod, _) = created(&pods, &body);
    let mut fewer = body.clone();
    fewer
        .at_mut(&["spec"])
        .unwrap()
        .make_object()
        .insert("tolerations", value!([]));
    let (_, wrong) = updated(&pods, &pod, &fewer, None);
    assert!(!wrong.is_empty());
    // Far more than needed even on a busy machine, far less than quadratic work takes.
    assert!(started.elapsed().as_secs() < 60);
}

#[test]
fn findings_and_depth_are_bounded() {
    let definitions = kind("customresourcedefinitions.apiextensions.k8s.io");
    let shape = &definitions.versions[0].shape;
    let mut schema = value!({"type": "object"});
    for _ in 0..80 {
        schema = value!({"properties": {"a-rather-long-name-of-a-property": (schema)}, "bogus": 1});
    }
    let mut body = value!({"metadata": {"name": "a"}, "spec": {"versions": [{"schema": {"openAPIV3Schema": (schema)}}]}});
    let mut findings = Vec::new();
    shape.conform(&mut body, &mut findings).unwrap();
    assert!(findings.iter().map(String::len).sum::<usize>() < 100_000);
    assert!(!findings.is_empty());
}

#[test]
fn scale_target_refs_need_a_group_unless_they_name_a_replication_controller() {
    let kind = kind("horizontalpodautoscalers.autoscaling");
    let body = |target: Value| value!({"metadata": {"name": "a", "namespace": "n"}, "spec": {"maxReplicas": 1, "scaleTargetRef": target}});
    let needed = |shown: &str| {
        vec![format!(
            "spec.scaleTargetRef.apiVersion: Invalid value: {shown:?}: apiVersion must specify API group"
        )]
    };
    for (version, name, expected) in [
        (None, "ReplicationController", vec![]),
        (Some("v1"), "ReplicationController", vec![]),
        (Some("apps/v1"), "Deployment", vec![]),
        (None, "Deployment", needed("")),
        (Some("v1"), "Pod", needed("v1")),
        (Some("/v1"), "Deployment", needed("/v1")),
    ] {
        let mut target = value!({"kind": name, "name": "x"});
        if let Some(version) = version {
            target.make_object().insert("apiVersion", value!(version));
        }
        let (object, wrong) = created(&kind, &body(target.clone()));
        assert_eq!(wrong, expected, "{target}");
        // An update that keeps the reference is accepted.
        let mut changed = object.value().clone();
        changed
            .make_object()
            .object_mut("spec")
            .insert("maxReplicas", value!(3));
        let (_, wrong) = updated(&kind, &object, &changed, None);
        assert_eq!(wrong, Vec::<String>::new(), "{target}");
    }
}

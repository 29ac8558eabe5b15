//! PodSecurity: pods and templates under the policies of their namespaces.

use crate::audit::Log;
use crate::support::*;
use bareboat::builtin::admission::PodSecurityConfiguration;
use bareboat::control_plane::Settings;
use bareboat::prelude::ControlPlane as _;
use bareboat_testing::TestServer;

const NAMESPACES: &str = "/api/v1/namespaces";

fn namespace(name: &str, labels: &[(&str, &str)]) -> Value {
    let label =
        |(key, value): &(&str, &str)| (format!("pod-security.kubernetes.io/{key}"), json!(value));
    let labels: serde_json::Map<String, Value> = labels.iter().map(label).collect();
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "a", "image": "x"}]},
    })
}

/// A pod that every level allows.
fn hardened(name: &str) -> Value {
    let mut pod = pod(name);
    pod["spec"]["securityContext"] =
        json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}});
    pod["spec"]["containers"][0]["securityContext"] =
        json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
    pod
}

fn pods(namespace: &str) -> String {
    format!("{NAMESPACES}/{namespace}/pods")
}

const RESTRICTED: &str = "allowPrivilegeEscalation != false (container \"a\" must set securityContext.allowPrivilegeEscalation=false), \
    unrestricted capabilities (container \"a\" must set securityContext.capabilities.drop=[\"ALL\"]), \
    runAsNonRoot != true (pod or container \"a\" must set securityContext.runAsNonRoot=true), \
    seccompProfile (pod or container \"a\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")";

#[tokio::test]
async fn pods_that_violate_the_policy_of_their_namespace_are_refused() {
    let server = TestServer::start().await;
    let made = namespace("strict", &[("enforce", "restricted")]);
    server.post(NAMESPACES, &made).await.expect(201);
    let (code, reason, message) = server.post(&pods("strict"), &pod("p")).await.status();
    assert_eq!((code, reason.as_str()), (403, "Forbidden"));
    let expected = format!(
        "pods \"p\" is forbidden: violates PodSecurity \"restricted:latest\": {RESTRICTED}"
    );
    assert_eq!(message, expected);
    let fine = server
        .post(&pods("strict"), &hardened("p"))
        .await
        .expect(201);
    assert_eq!(fine.header("warning"), "");
    // Other namespaces are as free as before.
    server.post(&pods("default"), &pod("p")).await.expect(201);

    // Updates that change no image are not judged: the policy may be newer than the pod.
    let made = namespace("later", &[]);
    server.post(NAMESPACES, &made).await.expect(201);
    server.post(&pods("later"), &pod("old")).await.expect(201);
    let labels =
        json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    let changed = server
        .patch(&format!("{NAMESPACES}/later"), MERGE, &labels)
        .await;
    let warnings = changed.expect(200).headers("warning");
    let reported = |text: &str| warnings.iter().any(|warning| warning.contains(text));
    assert!(
        reported(
            "existing pods in namespace \\\"later\\\" violate the new PodSecurity enforce level \\\"restricted:latest\\\""
        ),
        "{warnings:?}"
    );
    assert!(
        reported(
            "old: allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, seccompProfile"
        ),
        "{warnings:?}"
    );
    let old = format!("{}/old", pods("later"));
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    server.patch(&old, MERGE, &label).await.expect(200);
    let image = json!({"spec": {"containers": [{"name": "a", "image": "y"}]}});
    server.patch(&old, STRATEGIC, &image).await.expect(403);
    let debug = json!({"spec": {"ephemeralContainers": [{"name": "d", "image": "y"}]}});
    let path = format!("{old}/ephemeralcontainers");
    let (code, _, message) = server.patch(&path, STRATEGIC, &debug).await.status();
    assert_eq!(code, 403, "{message}");
    assert!(
        message.contains("containers \"a\", \"d\" must set"),
        "{message}"
    );
    let status = json!({"status": {"phase": "Running"}});
    server
        .patch(&format!("{old}/status"), MERGE, &status)
        .await
        .expect(200);
}

#[tokio::test]
async fn templates_cause_warnings_only() {
    let server = TestServer::start().await;
    let made = namespace(
        "strict",
        &[("enforce", "restricted"), ("enforce-version", "v1.30")],
    );
    server.post(NAMESPACES, &made).await.expect(201);
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": pod("p")["spec"]});
    let selector = json!({"matchLabels": {"a": "b"}});
    let never = |mut template: Value| {
        template["spec"]["restartPolicy"] = json!("Never");
        template
    };
    let core = "/api/v1/namespaces/strict";
    let cases = [
        (
            "apps",
            "deployments",
            "Deployment",
            json!({"selector": selector, "template": template}),
        ),
        (
            "apps",
            "replicasets",
            "ReplicaSet",
            json!({"selector": selector, "template": template}),
        ),
        (
            "apps",
            "daemonsets",
            "DaemonSet",
            json!({"selector": selector, "template": template}),
        ),
        (
            "apps",
            "statefulsets",
            "StatefulSet",
            json!({"selector": selector, "template": template, "serviceName": "s"}),
        ),
        (
            "batch",
            "jobs",
            "Job",
            json!({"template": never(template.clone())}),
        ),
        (
            "batch",
            "cronjobs",
            "CronJob",
            json!({"schedule": "* * * * *", "jobTemplate": {"spec": {"template": never(template.clone())}}}),
        ),
        (
            "",
            "replicationcontrollers",
            "ReplicationController",
            json!({"selector": {"a": "b"}, "template": template}),
        ),
    ];
    for (group, plural, kind, spec) in cases {
        let (path, version) = match group {
            "" => (format!("{core}/{plural}"), "v1".to_owned()),
            group => (
                format!("/apis/{group}/v1/namespaces/strict/{plural}"),
                format!("{group}/v1"),
            ),
        };
        let object =
            json!({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": spec});
        let made = server.post(&path, &object).await.expect(201);
        let warning = made.header("warning").to_owned();
        assert!(warning.contains("would violate PodSecurity \\\"restricted:v1.30\\\": allowPrivilegeEscalation != false"), "{plural}: {warning}");
    }
    let object = json!({"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "x"}, "template": template});
    let made = server
        .post(&format!("{core}/podtemplates"), &object)
        .await
        .expect(201);
    assert!(made.header("warning").contains("would violate PodSecurity"));
    let metrics = server.get("/metrics").await.text();
    let line = "pod_security_evaluations_total{decision=\"deny\",mode=\"warn\",policy_level=\"restricted\",policy_version=\"v1.30\",request_operation=\"create\",resource=\"controller\",subresource=\"\"} 8";
    assert!(metrics.contains(line), "{metrics}");
}

#[tokio::test]
async fn labels_of_namespaces_are_checked() {
    let server = TestServer::start().await;
    let wrong = namespace("wrong", &[("enforce", "odd"), ("warn-version", "1.2")]);
    let answer = server.post(NAMESPACES, &wrong).await;
    let (code, _, message) = answer.status();
    assert_eq!(code, 422);
    assert_eq!(
        message,
        "Namespace \"wrong\" is invalid: [metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"odd\": must be one of privileged, baseline, restricted, \
         metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: \"1.2\": must be \"latest\" or \"v1.x\"]"
    );
    server
        .post(NAMESPACES, &namespace("fine", &[]))
        .await
        .expect(201);
    let path = format!("{NAMESPACES}/fine");
    let patch = json!({"metadata": {"labels": {"pod-security.kubernetes.io/audit": "none"}}});
    server.patch(&path, MERGE, &patch).await.expect(422);
    // The label with the name of the namespace is set by the server and cannot be changed.
    let patch = json!({"metadata": {"labels": {"kubernetes.io/metadata.name": "other"}}});
    let changed = server.patch(&path, MERGE, &patch).await.expect(200).json();
    assert_eq!(
        changed["metadata"]["labels"]["kubernetes.io/metadata.name"],
        "fine"
    );
}

/// Starts a server with defaults and exemptions; audit events go to a log.
async fn configured(log: &Log) -> TestServer {
    let configuration = serde_json::to_string(&json!({
        "apiVersion": "pod-security.admission.config.k8s.io/v1", "kind": "PodSecurityConfiguration",
        "defaults": {"enforce": "baseline"},
        "exemptions": {"namespaces": ["free"], "usernames": ["jane"], "runtimeClasses": ["boxed"]},
    }));
    let configuration = bareboat_wire::json::parse(configuration.unwrap().as_bytes()).unwrap();
    let configuration = PodSecurityConfiguration::parse(&configuration.value).unwrap();
    let mut settings = Settings::default().pod_security(configuration);
    settings.disabled_admission.insert("ServiceAccount");
    let builder = TestServer::builder()
        .bare()
        .with(move |builder| builder.control_plane_with(&settings));
    let server = log.of(builder).start().await;
    for name in ["default", "free"] {
        server
            .post(NAMESPACES, &namespace(name, &[]))
            .await
            .expect(201);
    }
    server
}

#[tokio::test]
async fn audit_events_and_metrics_tell_of_violations_and_exemptions() {
    let log = Log::new("[{level: Metadata}]");
    let server = configured(&log).await;
    let labels = [
        ("enforce", "privileged"),
        ("audit", "restricted"),
        ("audit-version", "v1.30"),
    ];
    let watched = namespace("watched", &labels);
    server.post(NAMESPACES, &watched).await.expect(201);
    let jane = [
        ("impersonate-user", "jane"),
        ("impersonate-group", "system:masters"),
        ("content-type", "application/json"),
    ];
    let annotations = async |answer: Answer| -> Value {
        let events = log.eventually(answer.header("audit-id"), 2).await;
        let mut found = events.last().unwrap()["annotations"].clone();
        let map = found.as_object_mut().unwrap();
        map.retain(|key, _| key.starts_with("pod-security.kubernetes.io/"));
        found
    };
    let mut shared = pod("p");
    shared["spec"]["hostNetwork"] = json!(true);
    let refused = server.post(&pods("default"), &shared).await.expect(403);
    assert_eq!(
        annotations(refused).await,
        json!({"pod-security.kubernetes.io/enforce-policy": "baseline:latest"})
    );
    let made = server.post(&pods("watched"), &pod("p")).await.expect(201);
    assert_eq!(made.header("warning"), "");
    assert_eq!(
        annotations(made).await,
        json!({
            "pod-security.kubernetes.io/enforce-policy": "privileged:latest",
            "pod-security.kubernetes.io/audit-violations":
                format!("would violate PodSecurity \"restricted:v1.30\": {RESTRICTED}"),
        })
    );
    let free = server.post(&pods("free"), &shared).await.expect(201);
    let exempt = |why: &str| json!({"pod-security.kubernetes.io/exempt": why});
    assert_eq!(annotations(free).await, exempt("namespace"));
    let hers = server
        .send("POST", &pods("default"), &jane, shared.to_string())
        .await
        .expect(201);
    assert_eq!(annotations(hers).await, exempt("user"));
    let metrics = server.get("/metrics").await.expect(200).text();
    for line in [
        "pod_security_exemptions_total{request_operation=\"create\",resource=\"pod\",subresource=\"\"} 2",
        "pod_security_evaluations_total{decision=\"deny\",mode=\"audit\",policy_level=\"restricted\",\
         policy_version=\"v1.30\",request_operation=\"create\",resource=\"pod\",subresource=\"\"} 1",
        "pod_security_evaluations_total{decision=\"deny\",mode=\"enforce\",policy_level=\"baseline\",\
         policy_version=\"latest\",request_operation=\"create\",resource=\"pod\",subresource=\"\"} 1",
    ] {
        assert!(metrics.contains(line), "{line} is missing");
    }
}

#[tokio::test]
async fn defaults_and_exemptions_are_configured() {
    let log = Log::new("[{level: None}]");
    let server = configured(&log).await;
    let mut shared = pod("p");
    shared["spec"]["hostNetwork"] = json!(true);
    let (code, _, message) = server.post(&pods("default"), &shared).await.status();
    assert_eq!(code, 403);
    assert_eq!(
        message,
        "pods \"p\" is forbidden: violates PodSecurity \"baseline:latest\": host namespaces (hostNetwork=true)"
    );
    server.post(&pods("free"), &shared).await.expect(201);
    let jane = [
        ("impersonate-user", "jane"),
        ("impersonate-group", "system:masters"),
        ("content-type", "application/json"),
    ];
    let made = server
        .send("POST", &pods("default"), &jane, shared.to_string())
        .await;
    made.expect(201);
    let class = json!({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "boxed"}, "handler": "h"});
    server
        .post("/apis/node.k8s.io/v1/runtimeclasses", &class)
        .await
        .expect(201);
    shared["metadata"]["name"] = json!("q");
    shared["spec"]["runtimeClassName"] = json!("boxed");
    server.post(&pods("default"), &shared).await.expect(201);
    let patch =
        json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    let changed = server
        .patch(&format!("{NAMESPACES}/free"), MERGE, &patch)
        .await
        .expect(200);
    let warning = changed.header("warning");
    assert!(warning.contains("namespace \\\"free\\\" is exempt from Pod Security, and the policy (enforce=restricted:latest) will be ignored"), "{warning}");
}

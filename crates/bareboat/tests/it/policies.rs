//! Admission policies on a whole server: what they refuse, warn about and change.

mod mutating;
mod params;
mod rights;
mod status;
mod validating;

use crate::support::*;
use bareboat_testing::TestServer;

pub(crate) const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
pub(crate) const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

/// Returns rules that match a resource.
pub(crate) fn rules(group: &str, resource: &str, operations: &[&str]) -> Value {
    json!({"resourceRules": [{
        "apiGroups": [group], "apiVersions": ["*"], "operations": operations, "resources": [resource],
    }]})
}

/// Returns rules that match writes of ConfigMaps.
pub(crate) fn config_maps() -> Value {
    rules("", "configmaps", &["CREATE", "UPDATE"])
}

pub(crate) fn merged(mut base: Value, more: Value) -> Value {
    for (key, value) in more.as_object().unwrap() {
        base[key] = value.clone();
    }
    base
}

/// Creates a validating policy and its binding; ConfigMaps are validated unless `spec` says otherwise.
pub(crate) async fn validate(server: &TestServer, name: &str, spec: Value, binding: Value) {
    create(
        server,
        "validating",
        "Validating",
        name,
        spec,
        merged(json!({"validationActions": ["Deny"]}), binding),
    )
    .await;
}

/// Creates a mutating policy and its binding.
pub(crate) async fn mutate(server: &TestServer, name: &str, spec: Value, binding: Value) {
    let spec = merged(json!({"reinvocationPolicy": "Never"}), spec);
    create(server, "mutating", "Mutating", name, spec, binding).await;
}

async fn create(
    server: &TestServer,
    plural: &str,
    kind: &str,
    name: &str,
    spec: Value,
    binding: Value,
) {
    let spec = merged(json!({"matchConstraints": config_maps()}), spec);
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": format!("{kind}AdmissionPolicy"),
        "metadata": {"name": name}, "spec": spec,
    });
    let path = format!("{ADMISSION}/{plural}admissionpolicies");
    server.post(&path, &policy).await.expect(201);
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": format!("{kind}AdmissionPolicyBinding"),
        "metadata": {"name": format!("{name}-binding")},
        "spec": merged(json!({"policyName": name}), binding),
    });
    let path = format!("{ADMISSION}/{plural}admissionpolicybindings");
    server.post(&path, &binding).await.expect(201);
}

pub(crate) fn deployment(name: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    })
}

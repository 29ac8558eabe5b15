//! Creation under ten policies that match.

use anyhow::Result;
use serde_json::{Value, json};

use super::{creation_of_items, rehearse, remove, until};
use crate::bench::{Bench, items, namespace};
use crate::rows::{Measuring, name};

const JUDGED: &str = "bench-judged";

/// Number of policies that match.
const POLICIES: usize = 10;

/// The path of policies.
pub(super) const COLLECTION: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
/// The path of bindings.
pub(super) const BINDINGS: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";

/// A policy with a variable and three validations. The last one refuses objects with the name of the policy as label.
pub(super) fn policy(name: &str, rule: Value) -> Value {
    let own = format!(
        "!('rehearsal' in object.metadata.labels) || object.metadata.labels.rehearsal != '{name}'"
    );
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "variables": [{"name": "app", "expression": "object.metadata.labels['app']"}],
            "validations": [
                {"expression": "variables.app == 'bench'"},
                {"expression": "object.spec.field19 < 1000 && object.spec.field05.all(text, text.size() < 20)"},
                {"expression": own, "message": "a rehearsal"},
            ],
        },
    })
}

/// The binding of a policy, for one namespace.
pub(super) fn binding(name: &str, namespace: &str) -> Value {
    let selector = json!({"matchLabels": {"kubernetes.io/metadata.name": namespace}});
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {
            "policyName": name, "validationActions": ["Deny"], "matchResources": {"namespaceSelector": selector},
        },
    })
}

/// Creates objects that all policies judge.
pub(crate) fn policies<'a>(bench: &'a mut Bench<'_>) -> Measuring<'a> {
    Box::pin(async move {
        bench.post("/api/v1/namespaces", namespace(JUDGED)).await?;
        let names: Vec<String> = (0..POLICIES).map(|at| format!("bench-{at}")).collect();
        for name in &names {
            bench
                .post(COLLECTION, policy(name, creation_of_items()))
                .await?;
            bench.post(BINDINGS, binding(name, JUDGED)).await?;
        }
        let measured = measure(bench, &names).await;
        for name in &names {
            remove(bench, &format!("{BINDINGS}/{name}")).await?;
            remove(bench, &format!("{COLLECTION}/{name}")).await?;
        }
        measured
    })
}

async fn measure(bench: &mut Bench<'_>, names: &[String]) -> Result<()> {
    for name in names {
        until(&format!("policy {name} is in effect"), async || {
            let (status, text) = rehearse(bench, JUDGED, name).await?;
            Ok(status == 422 && text.contains("a rehearsal"))
        })
        .await?;
    }
    bench.settle().await?;
    let collection = items(JUDGED);
    let request = |at: usize| bench.request("POST", &collection, &bench.item.render(&name(at), at));
    let outcome = bench.load(64, 20_000).run(&bench.server, request).await?;
    bench.note("policies", &outcome);
    Ok(())
}

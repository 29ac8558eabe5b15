//! A policy whose binding selects many large parameter objects.

use crate::victim::Victim;
use serde_json::json;

/// How much memory an attack may add, in MiB. If each of the attackers decoded all 8 MiB of parameters at once, it would be more.
const ALLOWED: u64 = 64;
const ATTACKERS: usize = 8;

#[test]
fn parameters_that_are_large_together() {
    let victim = Victim::start(&[]);
    victim.fill("large", 16, 512 * 1024);
    let group = "/apis/admissionregistration.k8s.io/v1";
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "reads-much"},
        "spec": {
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["secrets"],
            }]},
            "validations": [{"expression": "params.metadata.name != 'filled-00015' || object.metadata.name != 'refused'"}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "selects-all"},
        "spec": {
            "policyName": "reads-much", "validationActions": ["Deny"],
            "paramRef": {"namespace": "large", "selector": {}, "parameterNotFoundAction": "Deny"},
        },
    });
    let policies = format!("{group}/validatingadmissionpolicies");
    let bindings = format!("{group}/validatingadmissionpolicybindings");
    victim.admin.post(&policies, &policy).accepted();
    victim.admin.post(&bindings, &binding).accepted();
    let secrets = "/api/v1/namespaces/default/secrets";
    // The last of all parameters counts.
    crate::process::eventually("the policy is in force", || {
        let name = json!({"metadata": {"name": "refused"}});
        let path = format!("{secrets}?dryRun=All");
        (victim.admin.post(&path, &name).code == 422).then_some(())
    });
    victim.attack(1, |_| {
        victim.grows_at_most(ALLOWED, || {
            std::thread::scope(|scope| {
                for _ in 0..ATTACKERS {
                    scope.spawn(|| {
                        let name = json!({"metadata": {"generateName": "secret-"}});
                        victim.admin.post(secrets, &name).accepted();
                    });
                }
            });
        });
    });
}

//! The author of a policy or a binding needs the right to read its parameters.

use super::*;
use crate::rbac::{AsUser, user};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const JSON: &str = "application/json";

/// Grants a user rights in the whole cluster, or in a namespace.
async fn grant(server: &TestServer, namespace: Option<&str>, name: &str, rules: Value) {
    let (place, role, binding) = match namespace {
        None => (RBAC.to_owned(), "ClusterRole", "ClusterRoleBinding"),
        Some(namespace) => (
            format!("{RBAC}/namespaces/{namespace}"),
            "Role",
            "RoleBinding",
        ),
    };
    let path = |kind: &str| format!("{place}/{}s", kind.to_lowercase());
    let object = json!({"metadata": {"name": name}, "rules": rules});
    server.post(&path(role), &object).await.expect(201);
    let object = json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}],
    });
    server.post(&path(binding), &object).await.expect(201);
}

/// The right to write everything about admission.
fn writer() -> Value {
    json!({"verbs": ["*"], "apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"]})
}

fn policy(kind: &str, name: &str, of: &str) -> Value {
    let (api_version, param_kind) = of.rsplit_once(' ').unwrap();
    let mut spec = json!({
        "matchConstraints": config_maps(),
        "paramKind": {"apiVersion": api_version, "kind": param_kind},
    });
    match kind {
        "Mutating" => {
            spec["reinvocationPolicy"] = json!("Never");
            spec["mutations"] = json!([{
                "patchType": "ApplyConfiguration",
                "applyConfiguration": {"expression": "Object{}"},
            }]);
        }
        _ => spec["validations"] = json!([{"expression": "true"}]),
    }
    json!({"metadata": {"name": name}, "spec": spec})
}

fn binding(kind: &str, name: &str, policy: &str, reference: Value) -> Value {
    let reference = merged(json!({"parameterNotFoundAction": "Allow"}), reference);
    let mut spec = json!({"policyName": policy, "paramRef": reference});
    if kind == "Validating" {
        spec["validationActions"] = json!(["Deny"]);
    }
    json!({"metadata": {"name": name}, "spec": spec})
}

fn path(kind: &str, plural: &str) -> String {
    format!("{ADMISSION}/{}admission{plural}", kind.to_lowercase())
}

#[tokio::test]
async fn a_policy_needs_the_right_to_read_all_its_parameters() {
    let server = TestServer::builder().without_controllers().start().await;
    let secrets = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]});
    grant(&server, None, "ann", json!([writer()])).await;
    grant(&server, Some("default"), "ann", json!([secrets])).await;
    grant(&server, None, "bob", json!([writer(), secrets])).await;
    let ann = AsUser(&server, user("ann", &[]));
    let bob = AsUser(&server, user("bob", &[]));
    for kind in ["Validating", "Mutating"] {
        let policies = path(kind, "policies");
        let secret = policy(kind, "p", "v1 Secret");
        let refused = ann.send("POST", &policies, JSON, &secret).await.expect(422);
        assert_eq!(
            refused.status().2,
            format!(
                "{kind}AdmissionPolicy.admissionregistration.k8s.io \"p\" is invalid: spec.paramKind: Forbidden: user ann must have \"get\" permission on all objects of the referenced paramKind (kind=Secret, apiVersion=v1)"
            )
        );
        bob.send("POST", &policies, JSON, &secret).await.expect(201);
        // A right to secrets is no right to kinds that do not exist yet.
        let unknown = policy(kind, "q", "example.com/v1 Nothing");
        bob.send("POST", &policies, JSON, &unknown)
            .await
            .expect(422);
        server.post(&policies, &unknown).await.expect(201);
        // An unchanged kind is not checked again.
        let one = format!("{policies}/p");
        let label = json!({"metadata": {"labels": {"a": "b"}}});
        ann.send("PATCH", &one, MERGE, &label).await.expect(200);
        let other = json!({"spec": {"paramKind": {"kind": "Pod"}}});
        ann.send("PATCH", &one, MERGE, &other).await.expect(422);
    }
}

#[tokio::test]
async fn a_binding_needs_the_right_to_read_the_parameters_it_names() {
    let server = TestServer::builder().without_controllers().start().await;
    grant(&server, None, "ann", json!([writer()])).await;
    let ann = AsUser(&server, user("ann", &[]));
    for kind in ["Validating", "Mutating"] {
        let secret = policy(kind, "p", "v1 Secret");
        server
            .post(&path(kind, "policies"), &secret)
            .await
            .expect(201);
    }
    let named = json!({"name": "s", "namespace": "default"});
    let selected = json!({"selector": {"matchLabels": {"a": "b"}}, "namespace": "default"});
    let refused = async |kind: &str, binding: &Value| {
        let path = path(kind, "policybindings");
        let answer = ann.send("POST", &path, JSON, binding).await.expect(422);
        let message = answer.status().2;
        let (_, why) = message.split_once("spec.paramRef: Forbidden: ").unwrap();
        why.to_owned()
    };
    for kind in ["Validating", "Mutating"] {
        assert_eq!(
            refused(kind, &binding(kind, "b", "p", named.clone())).await,
            "user ann does not have \"get\" permission on the object referenced by paramRef"
        );
        assert_eq!(
            refused(kind, &binding(kind, "b", "p", selected.clone())).await,
            "user ann does not have \"list\" permission on the object referenced by paramRef"
        );
        assert_eq!(
            refused(kind, &binding(kind, "b", "gone", named.clone())).await,
            "unable to get policy gone to determine minimum required permissions and user ann does not have \"get\" permission for all groups, versions and resources"
        );
    }
    let one = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["s"]});
    grant(&server, Some("default"), "ann", json!([one])).await;
    for kind in ["Validating", "Mutating"] {
        let path = path(kind, "policybindings");
        let allowed = binding(kind, "b", "p", named.clone());
        ann.send("POST", &path, JSON, &allowed).await.expect(201);
        // Without a namespace, the binding reads the secret of every namespace.
        let everywhere = binding(kind, "c", "p", json!({"name": "s"}));
        refused(kind, &everywhere).await;
        let change = json!({"spec": {"paramRef": {"name": "t"}}});
        let path = format!("{path}/b");
        ann.send("PATCH", &path, MERGE, &change).await.expect(422);
        let label = json!({"metadata": {"labels": {"a": "b"}}});
        ann.send("PATCH", &path, MERGE, &label).await.expect(200);
    }
}

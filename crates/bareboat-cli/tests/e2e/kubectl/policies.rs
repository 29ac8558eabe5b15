//! Admission policies: applied with kubectl, and what clients see of them.

use super::Kubectl;

const FEW_REPLICAS: &str = r"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: few-replicas}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}
  validations:
  - expression: object.spec.replicas <= 5
    messageExpression: '''at most 5 replicas, not '' + string(object.spec.replicas)'
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: everywhere}
spec: {policyName: few-replicas, validationActions: [Deny]}
";

const TEAM: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: team}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}
  failurePolicy: Fail
  reinvocationPolicy: Never
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: 'Object{metadata: Object.metadata{labels: {"team": "blue"}}}'
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: everywhere}
spec: {policyName: team}
"#;

#[test]
fn kubectl_applies_policies_and_they_refuse_and_change_deployments() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    kubectl.gives_for("apply -f -", FEW_REPLICAS);
    kubectl.gives_for("apply -f -", TEAM);
    kubectl.gives("create deployment small --image=i --replicas=2");
    kubectl.says("get deployment small --show-labels", &["team=blue"]);
    kubectl.refuses(
        "create deployment large --image=i --replicas=6",
        &["deployments.apps \"large\" is forbidden: ValidatingAdmissionPolicy 'few-replicas' with binding 'everywhere' denied request: at most 5 replicas, not 6"],
    );
    kubectl.refuses(
        "patch deployment small -p '{\"spec\":{\"replicas\":7}}'",
        &["denied request: at most 5 replicas, not 7"],
    );
    let path = "jsonpath={.status.observedGeneration}";
    kubectl.until(
        &format!("get validatingadmissionpolicy few-replicas -o {path}"),
        "1",
    );
    // Policies are there again after a restart, and gone when they are deleted.
    let kubectl = kubectl.restarted();
    kubectl.refuses(
        "create deployment large --image=i --replicas=6",
        &["at most 5 replicas"],
    );
    kubectl.gives("delete validatingadmissionpolicybinding everywhere");
    kubectl.gives("create deployment large --image=i --replicas=6");
}

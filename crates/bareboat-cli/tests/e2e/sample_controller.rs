//! The published k8s.io/sample-controller, an ordinary client of the Go library: it keeps a Deployment for each Foo.

use crate::kubectl::Kubectl;
use crate::kubectl::fixtures::{FOOS, define};
use crate::process::{Followed, eventually};
use crate::tools;
use std::process::Command;

fn example(name: &str, deployment: &str) -> String {
    format!(
        "apiVersion: samplecontroller.k8s.io/v1alpha1\nkind: Foo\nmetadata: {{name: {name}}}\n\
         spec: {{deploymentName: {deployment}, replicas: 1}}\n"
    )
}

#[test]
fn the_sample_controller_of_kubernetes_keeps_a_deployment_for_each_foo() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    let Some(program) = tools::peer("sample-controller") else {
        return;
    };
    define(&kubectl, FOOS, "foos.samplecontroller.k8s.io");
    let mut command = Command::new(program);
    command.arg("-kubeconfig").arg(kubectl.home.kubeconfig());
    let _controller = Followed::start("sample-controller", &mut command);

    kubectl.gives_for("create -f -", &example("example", "web"));
    kubectl.says("wait --for=create deployment/web --timeout=240s", &[]);
    let uid = kubectl.gives("get foo example -o 'jsonpath={.metadata.uid}'");
    assert_eq!(
        kubectl.gives("get deployment web -o 'jsonpath={.metadata.ownerReferences[*].uid}'"),
        uid
    );
    let described = |what: &str, words: &[&str]| {
        eventually(what, || {
            let text = kubectl.gives(&format!("describe foo {what}"));
            words.iter().all(|word| text.contains(word)).then_some(())
        });
    };
    described(
        "example",
        &[
            "Normal",
            "Synced",
            "sample-controller",
            "Foo synced successfully",
        ],
    );

    // The Foo's status follows the Deployment's, and the Deployment follows the Foo's spec.
    kubectl.gives(
        r#"patch deployment web --subresource=status -p '{"status":{"replicas":1,"readyReplicas":1,"availableReplicas":1}}'"#,
    );
    kubectl.says(
        "wait --for='jsonpath={.status.availableReplicas}=1' foo/example --timeout=240s",
        &["condition met"],
    );
    kubectl.gives(r#"patch foo example --type=merge -p '{"spec":{"replicas":3}}'"#);
    kubectl.says(
        "wait --for='jsonpath={.spec.replicas}=3' deployment/web --timeout=240s",
        &["condition met"],
    );

    // The controller does not change a Deployment of another owner.
    kubectl.gives("create deployment taken --image=nginx");
    kubectl.gives_for("create -f -", &example("late", "taken"));
    described(
        "late",
        &[
            "Warning",
            "ErrResourceExists",
            "already exists and is not managed by Foo",
        ],
    );

    kubectl.says("delete foo example", &["deleted"]);
    kubectl.says("wait --for=delete deployment/web --timeout=240s", &[]);
    assert_eq!(
        kubectl.gives("get deployments -o name"),
        "deployment.apps/taken\n"
    );
}

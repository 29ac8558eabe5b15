//! Runs the session of the README with kubectl and the controllers of Kubernetes.

use bareboat_sessions::{Session, available, workspace_binary};

#[test]
fn the_readme_is_true() {
    if !available("kubectl") || !available("kube-controller-manager") {
        return;
    }
    Session::new("README.md")
        .program("bareboat-cli", workspace_binary("bareboat-cli", "bareboat"))
        .program("custom-metrics", env!("CARGO_BIN_EXE_custom-metrics"))
        .port(6443)
        .run();
}

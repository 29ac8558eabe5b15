//! Runs the session of the README with kubectl.

use bareboat_sessions::{Session, available, workspace_binary};

#[test]
fn the_readme_is_true() {
    if !available("kubectl") {
        return;
    }
    Session::new("README.md")
        .program("bareboat-cli", workspace_binary("bareboat-cli", "bareboat"))
        .program("metrics-server", env!("CARGO_BIN_EXE_metrics-server"))
        .port(6443)
        .run();
}

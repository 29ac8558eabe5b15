//! Runs the session of the README.

use bareboat_sessions::{Session, available, workspace_binary};

#[test]
fn the_readme_is_true() {
    if !available("kubectl") {
        return;
    }
    Session::new("README.md")
        .program("sample-controller", env!("CARGO_BIN_EXE_sample-controller"))
        .program("bareboat-cli", workspace_binary("bareboat-cli", "bareboat"))
        .port(8443)
        .port(6443)
        .run();
}

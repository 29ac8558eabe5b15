//! Runs the session of the README.

use bareboat_sessions::{Session, available, workspace_binary};

#[test]
fn the_readme_is_true() {
    if !available("kubectl") || !available("python3") {
        return;
    }
    Session::new("README.md")
        .program("proxy-kind", env!("CARGO_BIN_EXE_proxy-kind"))
        .program("bareboat", workspace_binary("bareboat-cli", "bareboat"))
        .port(8443)
        .port(6443)
        .port(7443)
        .port(8000)
        .run();
}

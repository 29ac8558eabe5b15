//! Runs the session of the README.

use bareboat_sessions::{Session, available, workspace_binary};

#[test]
fn the_readme_is_true() {
    if !available("kubectl") {
        return;
    }
    Session::new("README.md")
        .program("fleet", env!("CARGO_BIN_EXE_fleet"))
        .program("bareboat", workspace_binary("bareboat-cli", "bareboat"))
        .port(8443)
        .run();
}

//! Runs the sessions of the example: that of the README with kubectl, and that of virtctl.md where virtctl is installed.

use bareboat_sessions::{Session, available, workspace_binary};

fn session(page: &str) -> Session {
    Session::new(page)
        .program("bareboat-cli", workspace_binary("bareboat-cli", "bareboat"))
        .program("virt", env!("CARGO_BIN_EXE_virt"))
        .port(6443)
}

#[test]
fn the_readme_is_true() {
    if available("kubectl") && available("python3") {
        session("README.md").run();
    }
}

/// virtctl is large to build, so `make systems` does it.
#[test]
#[ignore = "needs virtctl, which make systems builds"]
fn virtctl_works() {
    session("virtctl.md").run();
}

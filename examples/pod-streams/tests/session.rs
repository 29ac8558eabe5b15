//! Runs the session of the README with kubectl.

use bareboat_sessions::{Session, available};

#[test]
fn the_readme_is_true() {
    if !available("kubectl") || !available("python3") || !available("curl") {
        return;
    }
    Session::new("README.md")
        .program("pod-streams", env!("CARGO_BIN_EXE_pod-streams"))
        .port(6443)
        .port(8080)
        .port(8081)
        .run();
}

//! Runs the session of the README.

use bareboat_sessions::{Session, available};

#[test]
fn the_readme_is_true() {
    if !available("kubectl") {
        return;
    }
    Session::new("README.md")
        .program("kubestack", env!("CARGO_BIN_EXE_kubestack"))
        .port(8443)
        .run();
}

//! Runs the session of the README.

use bareboat_sessions::{Session, available};

#[test]
fn the_readme_is_true() {
    if !available("kubectl") {
        return;
    }
    Session::new("README.md")
        .program("hello", env!("CARGO_BIN_EXE_hello"))
        .port(8443)
        .run();
}

//! Runs the session of the README.

use bareboat_sessions::{Session, available};

#[test]
fn the_readme_is_true() {
    if available("kubectl") {
        Session::new("README.md")
            .program("own-backend", env!("CARGO_BIN_EXE_own-backend"))
            .port(8443)
            .run();
    }
}

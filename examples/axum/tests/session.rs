//! Runs the session of the README.

use bareboat_sessions::{Session, available};

#[test]
fn the_readme_is_true() {
    if available("kubectl") && available("openssl") && available("curl") {
        Session::new("README.md")
            .program("axum-app", env!("CARGO_BIN_EXE_axum-app"))
            .port(8443)
            .run();
    }
}

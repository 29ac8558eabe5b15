//! Runs the session of the README.

use bareboat_sessions::{Session, available};

#[test]
fn the_readme_is_true() {
    if available("kubectl") && available("openssl") {
        Session::new("README.md")
            .program("smallest", env!("CARGO_BIN_EXE_smallest"))
            .port(8443)
            .run();
    }
}

//! Runs the session of the README on a MariaDB of its own.
#![allow(clippy::unwrap_used)]

#[allow(dead_code, reason = "the tests of the engine use more of it")]
#[path = "../../../crates/bareboat-sql/tests/mariadb/cluster.rs"]
mod cluster;

use bareboat_sessions::{Session, available, workspace_binary};

#[test]
fn the_readme_is_true() {
    if !available("kubectl") || !available("mariadbd") {
        return;
    }
    let mariadb = cluster::Cluster::start(&[]).unwrap();
    Session::new("README.md")
        .program("blog", env!("CARGO_BIN_EXE_blog"))
        .program("bareboat", workspace_binary("bareboat-cli", "bareboat"))
        .port(8443)
        .replace("3306", &mariadb.port.to_string())
        .run();
}

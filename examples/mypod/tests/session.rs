//! Runs the session of the README.

use bareboat_sessions::{Session, available, workspace_binary};
use std::process::Command;

#[test]
fn the_readme_is_true() {
    if !available("kubectl") || !available("go") {
        return;
    }
    // The session has a HOME of its own, but what Go compiled before is used.
    let cache = Command::new("go").args(["env", "GOCACHE"]).output();
    let cache = cache.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    Session::new("README.md")
        .program("bareboat", workspace_binary("bareboat-cli", "bareboat"))
        .env("GOCACHE", &cache.unwrap_or_default())
        .env("GOTOOLCHAIN", "local")
        .port(6443)
        .port(9443)
        .run();
}

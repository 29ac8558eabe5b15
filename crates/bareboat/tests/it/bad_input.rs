//! Hundreds of invalid inputs: each gets the right Status, and the server keeps working.

mod bodies;
mod raw;
mod requests;

use crate::support::*;
use bareboat_testing::TestServer;

/// Checks that the server still works.
async fn unharmed(server: &TestServer, after: &str) {
    let answer = server.get("/readyz").await;
    assert_eq!(answer.text(), "ok", "after {after}");
    let path = format!("{MAPS}?dryRun=All");
    assert_eq!(
        server.post(&path, &config_map("fine")).await.code,
        201,
        "after {after}"
    );
}

//! Bad input by the hundred: the right Status each time, and a server that goes on as before.

mod bodies;
mod raw;
mod requests;

use crate::support::*;
use bareboat_testing::TestServer;

/// Whether the server still does what it should.
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

//! Waits until the store is as new as a read requires.

use super::kind_request::KindRequest;
use crate::flow;
use bareboat_api::Status;
use std::time::Duration;

/// How long a read waits for a revision in the future.
const PATIENCE: Duration = Duration::from_secs(3);

/// Waits until the store has reached a revision.
pub(crate) async fn at_least(call: &KindRequest, version: u64) -> Result<(), Status> {
    let store = call.served.store();
    if version <= store.visible() {
        return Ok(());
    }
    // Gives up before the deadline of the request, so that the answer can name the revision.
    let patience = PATIENCE.min(call.time_left() / 2);
    if flow::away(call.served.resource().wait_for(version, patience)).await {
        return Ok(());
    }
    let text = format!(
        "Too large resource version: {version}, current: {}",
        store.visible()
    );
    Err(Status::timeout(text)
        .with_cause("ResourceVersionTooLarge", "Too large resource version", "")
        .retry_after(1))
}

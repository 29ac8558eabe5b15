//! How new a read must be.

use super::call::Call;
use bareboat_api::Status;
use std::time::Duration;

/// How long a read waits for a version that has not happened yet.
const PATIENCE: Duration = Duration::from_secs(3);

/// Waits until the store has reached a version.
pub(crate) async fn at_least(call: &Call, version: u64) -> Result<(), Status> {
    let store = call.served.store();
    if version <= store.visible() {
        return Ok(());
    }
    // It gives up before the deadline of the request, so that the answer can say what was waited for.
    let patience = PATIENCE.min(call.time_left() / 2);
    if call.served.resource().wait_for(version, patience).await {
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

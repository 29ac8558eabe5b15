//! The freshness barrier of requests: on a log that other servers write to, a request sees everything that was
//! acknowledged anywhere before it arrived.
//!
//! It comes first, so that answers such as 401, 403 and 404 are as fresh as objects. A request for any version
//! (`resourceVersion=0`) does without. On a log with one writer it costs a look at a flag.

use super::health::Health;
use super::state::State;
use crate::request::info::RequestInfo;
use crate::request::query::Query;
use bareboat_api::Status;
use bareboat_storage::Store;
use std::sync::Arc;
use std::time::Duration;

/// How long a request waits.
const PATIENCE: Duration = Duration::from_secs(3);

/// The server is not ready when it has not seen the log for this long.
const STALE: Duration = Duration::from_secs(10);

/// Returns whether a request must not be answered before this server has seen what others have written.
pub(super) fn is_needed(state: &State, query: &Query, info: &RequestInfo) -> bool {
    let public = || !info.is_resource && state.is_public(&info.path);
    is_shared(state) && !public() && !is_about_any_version(query, info)
}

/// Waits until this server has seen what others have written.
pub(super) async fn barrier(state: &State) -> Result<(), Status> {
    for store in state.other_stores.iter().chain([&state.store]) {
        match store.freshen(PATIENCE).await {
            Ok(true) => {}
            Ok(false) => return Err(refused()),
            Err(error) => return Err(refused().caused_by(error)),
        }
    }
    Ok(())
}

fn is_shared(state: &State) -> bool {
    state.store.is_shared() || state.other_stores.iter().any(Store::is_shared)
}

fn refused() -> Status {
    Status::unavailable(
        "the store cannot be reached, so the answer could be out of date; reads with resourceVersion=0 still work",
    )
    .retry_after(1)
}

fn is_about_any_version(query: &Query, info: &RequestInfo) -> bool {
    matches!(info.verb.as_str(), "get" | "list" | "watch")
        && query.get("resourceVersion") == Some("0")
}

/// Adds the check that this server is not too far behind to serve, if others write to its log.
pub(super) fn add_check(health: &mut Health, store: &Store) {
    if store.is_shared() {
        let store = store.clone();
        health.add_ready("store-fresh", Arc::new(move || stale(&store)));
    }
}

fn stale(store: &Store) -> Result<(), String> {
    let unproven = store.stats().unproven_for;
    match unproven > STALE {
        true => Err(format!(
            "the log was last seen {} s ago",
            unproven.as_secs()
        )),
        false => Ok(()),
    }
}

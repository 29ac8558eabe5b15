//! Deletes many objects of a kind at once.

use crate::Client;
use crate::kinds::entry_path;
use bareboat_api::kind::Kind;
use bareboat_api::{Status, Value, value};
use bareboat_storage::Entry;
use std::sync::Arc;
use tokio::task::JoinSet;

/// How many requests run at the same time: enough for the sequencer to commit them in groups.
const AT_ONCE: usize = 64;
/// How many failures are returned.
const MAX_FAILURES: usize = 5;

/// Deletes objects of a kind with background propagation. Objects that do not exist count as deleted.
///
/// Returns the first few failures.
pub(crate) async fn sweep(client: &Client, kind: &Kind, entries: Vec<Arc<Entry>>) -> Vec<Status> {
    let client = client.keeping(kind);
    let mut failures = Vec::new();
    let mut running: JoinSet<Result<(), Status>> = JoinSet::new();
    for entry in entries {
        if running.len() >= AT_ONCE {
            note(&mut failures, running.join_next().await);
        }
        let Some(path) = entry_path(kind, &entry) else {
            let why = format!("no version of {} is served", kind.names.plural);
            return vec![Status::unavailable(why)];
        };
        let client = client.clone();
        running.spawn(async move {
            let uid = &*entry.facets().uid;
            let options = background(uid);
            match client.remove(&path, &options).await {
                // Another object has this name now.
                Err(status) if status.code == 409 => Ok(()),
                other => other,
            }
        });
    }
    while let Some(ended) = running.join_next().await {
        note(&mut failures, Some(ended));
    }
    failures
}

fn background(uid: &str) -> Value {
    value!({
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "preconditions": {"uid": uid},
    })
}

fn note(
    failures: &mut Vec<Status>,
    ended: Option<Result<Result<(), Status>, tokio::task::JoinError>>,
) {
    let failure = match ended {
        Some(Ok(Err(status))) => status,
        Some(Err(error)) => Status::internal(error),
        None | Some(Ok(Ok(()))) => return,
    };
    if failures.len() < MAX_FAILURES {
        failures.push(failure);
    }
}

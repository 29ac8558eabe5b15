//! How a watch starts: with the initial state, after a revision, or with an ERROR event.

use super::super::freshness;
use super::super::kind_request::KindRequest;
use super::super::selection::Selection;
use crate::request::options::ListOptions;
use bareboat_api::Status;
use bareboat_storage::{Snapshot, WatchError, WatchSpec, Watcher};

/// How a watch starts.
pub(super) enum Start {
    /// With every object of a snapshot, then the changes after it.
    State {
        snapshot: Snapshot,
        prefix: String,
        announce_end: bool,
        watcher: Watcher,
    },
    /// With the changes after a revision.
    After(Watcher),
    /// With one ERROR event, which ends it.
    Failed(Status),
}

impl Start {
    /// Selects the start from revision and options.
    pub(super) async fn choose(
        call: &KindRequest,
        options: &ListOptions,
        selection: &Selection,
    ) -> Start {
        let version = options.resource_version.unwrap_or(0);
        if version > call.served.store().visible()
            && let Err(status) = freshness::at_least(call, version).await
        {
            // A client that outlived a reset of the server holds a revision from before it. "Expired" makes every
            // client list again. With `NotOlderThan` the server has waited for the revision, and the time is over.
            return Start::Failed(match options.send_initial_events {
                Some(true) => status,
                _ => from_the_future(version, call.served.store().visible()),
            });
        }
        let with_state = options.send_initial_events.unwrap_or(version == 0);
        if !with_state {
            let after = if version == 0 {
                call.served.store().visible()
            } else {
                version
            };
            return match follow(call, selection, after) {
                Ok(watcher) => Start::After(watcher),
                Err(status) => Start::Failed(status),
            };
        }
        let snapshot = call.served.resource().snapshot();
        match follow(call, selection, snapshot.revision()) {
            Ok(watcher) => Start::State {
                prefix: call.served.prefix(&call.ask.info.namespace),
                snapshot,
                announce_end: options.send_initial_events == Some(true) && options.bookmarks,
                watcher,
            },
            Err(status) => Start::Failed(status),
        }
    }
}

/// Creates a watcher for the selected objects, registered in the index as narrowly as possible.
fn follow(call: &KindRequest, selection: &Selection, after: u64) -> Result<Watcher, Status> {
    let namespaced = call.served.kind.namespaced();
    let namespace = if call.ask.info.namespace.is_empty() && namespaced {
        selection.pinned_namespace().unwrap_or("")
    } else {
        &call.ask.info.namespace
    };
    let mut spec = match selection.pinned_name() {
        Some(name) if !namespaced || !namespace.is_empty() => {
            WatchSpec::name(after, call.served.key(namespace, name))
        }
        _ if namespaced && !namespace.is_empty() => WatchSpec::namespace(after, namespace),
        _ => WatchSpec::all(after),
    };
    if let Some((key, value)) = selection.label_hint() {
        spec = spec.with_label(key, value);
    }
    call.served
        .resource()
        .watch(spec)
        .map_err(|error| watch_error(error, after))
}

/// Returns the Status of a failed watch.
pub(super) fn watch_error(error: WatchError, version: u64) -> Status {
    match error {
        WatchError::Expired { floor } => too_old(version, floor),
        other => Status::failed(other),
    }
}

/// Returns a 410 for a revision this server has not reached, so that the client lists again.
fn from_the_future(version: u64, known: u64) -> Status {
    Status::expired(format!(
        "resource version {version} is newer than the newest of this server ({known}); list again"
    ))
}

fn too_old(version: u64, known: u64) -> Status {
    Status::expired(format!("too old resource version: {version} ({known})"))
}

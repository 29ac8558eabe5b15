//! The end of pods nobody runs: those that were deleted with a grace period go when it is over.
//!
//! A kubelet would tell when the containers have ended; here the clock does.

use crate::Client;
use crate::feed::Listener;
use crate::kinds::{entry_path, is_deleting, of_store};
use crate::queue::{Queue, Verdict};
use bareboat_api::value;
use bareboat_server::Server;
use bareboat_storage::{Entry, Event, EventKind, Resource, Store};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An object whose grace period runs.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Ending {
    store: Arc<str>,
    key: Arc<str>,
}

/// Whether any kind has grace periods.
pub(crate) fn has_work(server: &Server) -> bool {
    let table = server.catalog().table();
    table
        .iter()
        .any(|serving| serving.kind().policy.graceful_deletion)
}

/// Notes when grace periods end.
pub(crate) struct Ear {
    queue: Arc<Queue<Ending>>,
    server: Server,
}

impl Ear {
    pub(crate) fn new(queue: Arc<Queue<Ending>>, server: Server) -> Ear {
        Ear { queue, server }
    }

    fn note(&self, store: &str, entry: &Entry) {
        let ending = Ending {
            store: store.into(),
            key: entry.key().into(),
        };
        self.queue.add_at(ending, Instant::now() + left(entry));
    }
}

impl Listener for Ear {
    fn reset(&mut self, store: &Store) {
        let table = self.server.catalog().table();
        let graceful = table
            .iter()
            .filter(|serving| serving.kind().policy.graceful_deletion);
        for serving in graceful {
            let name = &serving.kind().store;
            for entry in store.resource(name).snapshot().range("", None) {
                // Also what was about to go at once when the server ended.
                if is_ending(entry) {
                    self.note(name, entry);
                }
            }
        }
    }

    fn heard(&mut self, resource: &Arc<Resource>, event: &Event) {
        if event.kind != EventKind::Deleted && has_grace(&event.entry) {
            let graceful = {
                let table = self.server.catalog().table();
                let kind = of_store(&table, resource.name());
                kind.is_some_and(|kind| kind.policy.graceful_deletion)
            };
            if graceful {
                self.note(resource.name(), &event.entry);
            }
        }
    }
}

/// Whether the deletion of an object has begun, with a grace period or without.
fn is_ending(entry: &Entry) -> bool {
    is_deleting(entry) && entry.facets().deletion_grace_period_seconds.is_some()
}

fn has_grace(entry: &Entry) -> bool {
    is_deleting(entry) && entry.facets().deletion_grace_period_seconds.unwrap_or(0) > 0
}

/// How much of the grace period is left.
fn left(entry: &Entry) -> Duration {
    let end = entry.facets().deletion_timestamp.as_deref();
    match end.map(str::parse::<jiff::Timestamp>) {
        Some(Ok(end)) => {
            let left = end.duration_since(jiff::Timestamp::now());
            Duration::try_from(left).unwrap_or(Duration::ZERO)
        }
        _ => Duration::ZERO,
    }
}

/// Ends what is due.
pub(crate) struct Worker {
    client: Client,
}

impl Worker {
    pub(crate) fn new(client: &Client) -> Worker {
        Worker {
            client: client.named("pod-reaper"),
        }
    }

    pub(crate) async fn look(&self, ending: Ending) -> Verdict {
        let server = self.client.server();
        let Some(entry) = server.store().resource(&ending.store).get(&ending.key) else {
            return Verdict::Done;
        };
        if !is_ending(&entry) {
            return Verdict::Done;
        }
        let left = left(&entry);
        if !left.is_zero() {
            return Verdict::After(left);
        }
        let path = {
            let table = server.catalog().table();
            of_store(&table, &ending.store).and_then(|kind| entry_path(kind, &entry))
        };
        let Some(path) = path else {
            return Verdict::Done;
        };
        let options = value!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": (&*entry.facets().uid)},
        });
        match self.client.remove(&path, &options).await {
            Ok(()) => Verdict::Done,
            Err(status) if status.code == 409 => Verdict::Done,
            Err(status) => {
                tracing::debug!(%path, %status, "a pod could not be ended");
                Verdict::Retry
            }
        }
    }
}

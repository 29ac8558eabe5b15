//! Deletes objects of kinds with a time to live, such as events. The time counts from the last change.
//!
//! All objects of a kind live equally long, so they expire in the order of their last change. For each kind there is a list
//! of deadlines (`deadlines`). A change adds a new deadline at the end, and the old deadline of the object is ignored.

mod deadlines;

use crate::Client;
use crate::controller::Controller;
use crate::feed::Listener;
use crate::identity::Identity;
use crate::kinds::{entry_path, of_store};
use crate::queue::{Queue, Verdict};
use crate::startup::Context;
use bareboat_api::kind::Kind;
use bareboat_api::{Status, value};
use bareboat_server::Server;
use bareboat_server::kinds::catalog::{Backing, Table};
use bareboat_storage::{Entry, Event, EventKind, Resource, Store};
use deadlines::{Deadlines, age};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// How many objects are deleted at the same time: enough for the sequencer to commit them in groups.
const BATCH: usize = 64;

/// The deadlines of all kinds with a time to live, by the name of the stored resource.
type AllDeadlines = Mutex<HashMap<Arc<str>, Deadlines>>;

/// Notices when objects change, and keeps their deadlines.
pub(crate) struct ExpiryListener {
    queue: Arc<Queue<Arc<str>>>,
    deadlines: Arc<AllDeadlines>,
    server: Server,
}

impl Listener for ExpiryListener {
    fn reset(&mut self, store: &Store) {
        // Kinds that are added later are custom kinds, which have no time to live.
        let kinds = times_to_live(&self.server.catalog().table());
        let mut deadlines = self.deadlines.lock();
        deadlines.clear();
        for (name, ttl) in kinds {
            let resource = store.resource(&name);
            deadlines.insert(name.clone(), Deadlines::of_all(resource, ttl, age));
            self.queue.add(name);
        }
    }

    fn on_event(&mut self, resource: &Arc<Resource>, event: &Event) {
        if event.kind == EventKind::Deleted {
            return;
        }
        let mut deadlines = self.deadlines.lock();
        if let Some(deadlines) = deadlines.get_mut(resource.name())
            && let Some(due) = deadlines.push(&event.entry, Instant::now())
        {
            self.queue.add_at(resource.name().into(), due);
        }
    }
}

fn times_to_live(table: &Table) -> HashMap<Arc<str>, Duration> {
    let stored = table
        .iter()
        .filter(|backing| matches!(backing, Backing::Stored(_)));
    stored
        .filter_map(|backing| {
            let kind = backing.kind();
            let ttl = Duration::from_secs(kind.policy.ttl_seconds?);
            Some((Arc::from(kind.store.as_str()), ttl))
        })
        .collect()
}

/// Deletes objects that have expired. Keys are names of stored resources.
pub(crate) struct ExpiryController {
    client: Client,
    deadlines: Arc<AllDeadlines>,
}

impl Controller for ExpiryController {
    const NAME: &'static str = "expiry";
    const MANAGER: &'static str = "expiry-controller";
    const PARALLEL: usize = 4;
    type Key = Arc<str>;
    type Listener = ExpiryListener;

    fn identity(table: &Table) -> Identity {
        Identity::deleting("bareboat-expiry", table, |kind| {
            kind.policy.ttl_seconds.is_some()
        })
    }

    fn new(
        context: &mut Context<'_>,
        queue: Arc<Queue<Arc<str>>>,
    ) -> (ExpiryController, ExpiryListener) {
        let deadlines = Arc::new(AllDeadlines::default());
        let controller = ExpiryController {
            client: context.client.clone(),
            deadlines: deadlines.clone(),
        };
        let listener = ExpiryListener {
            queue,
            deadlines,
            server: context.server.clone(),
        };
        (controller, listener)
    }

    async fn reconcile(&self, store: Arc<str>) -> Verdict {
        let kind = {
            let table = self.client.server().catalog().table();
            of_store(&table, &store).cloned()
        };
        let Some(kind) = kind else {
            return Verdict::Done;
        };
        loop {
            let expired = {
                let mut deadlines = self.deadlines.lock();
                let Some(deadlines) = deadlines.get_mut(&store) else {
                    return Verdict::Done;
                };
                let expired = deadlines.pop_due(Instant::now(), BATCH);
                if expired.is_empty() {
                    return match deadlines.next() {
                        Some(due) => Verdict::After(due.saturating_duration_since(Instant::now())),
                        None => Verdict::Done,
                    };
                }
                expired
            };
            let mut running = JoinSet::new();
            for entry in expired {
                let (client, kind) = (self.client.clone(), kind.clone());
                running.spawn(async move {
                    let outcome = delete(&client, &kind, &entry).await;
                    (entry, outcome)
                });
            }
            while let Some(ended) = running.join_next().await {
                if let Ok((entry, Err(status))) = ended {
                    tracing::debug!(key = entry.key(), %status, "cannot delete an expired object");
                    // It is tried again after one more lifetime.
                    if let Some(deadlines) = self.deadlines.lock().get_mut(&store) {
                        deadlines.push(&entry, Instant::now());
                    }
                }
            }
        }
    }
}

/// Deletes an object unless it has changed. A changed object has a new deadline.
async fn delete(client: &Client, kind: &Kind, entry: &Entry) -> Result<(), Status> {
    let Some(path) = entry_path(kind, entry) else {
        return Ok(());
    };
    let options = value!({
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {
            "uid": (&*entry.facets().uid),
            "resourceVersion": (entry.revision().to_string()),
        },
    });
    match client.remove(&path, &options).await {
        Err(status) if status.code != 409 => Err(status),
        _ => Ok(()),
    }
}

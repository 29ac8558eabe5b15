//! Objects of kinds that do not last: each is deleted when its time is over, counted from its last change.
//!
//! All objects of a kind last equally long, so they end in the order in which they were last changed: there is a line of
//! them for each kind (`line`). A change puts an object at the end once more; where it stood before, it is passed over.

mod line;

use crate::Client;
use crate::feed::Listener;
use crate::kinds::{entry_path, of_store};
use crate::queue::{Queue, Verdict};
use bareboat_api::kind::Kind;
use bareboat_api::{Status, value};
use bareboat_server::Server;
use bareboat_server::kinds::catalog::{Serving, Table};
use bareboat_storage::{Entry, Event, EventKind, Resource, Store};
use line::{Line, age};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// How many are deleted at once: enough for the sequencer to commit them in groups.
const AT_ONCE: usize = 64;

/// The lines, by where their objects are stored.
#[derive(Default)]
pub(crate) struct Lines(Mutex<HashMap<Arc<str>, Line>>);

/// Notes when objects end.
pub(crate) struct Ear {
    queue: Arc<Queue<Arc<str>>>,
    lines: Arc<Lines>,
    server: Server,
}

impl Ear {
    pub(crate) fn new(queue: Arc<Queue<Arc<str>>>, lines: Arc<Lines>, server: Server) -> Ear {
        Ear {
            queue,
            lines,
            server,
        }
    }
}

impl Listener for Ear {
    fn reset(&mut self, store: &Store) {
        // Kinds that come later are custom kinds, whose objects stay.
        let lasting = lasting(&self.server.catalog().table());
        let mut lines = self.lines.0.lock();
        lines.clear();
        for (name, lasts) in lasting {
            let resource = store.resource(&name);
            lines.insert(name.clone(), Line::of_all(resource, lasts, age));
            self.queue.add(name);
        }
    }

    fn heard(&mut self, resource: &Arc<Resource>, event: &Event) {
        if event.kind == EventKind::Deleted {
            return;
        }
        let mut lines = self.lines.0.lock();
        if let Some(line) = lines.get_mut(resource.name())
            && let Some(due) = line.join(&event.entry, Instant::now())
        {
            self.queue.add_at(resource.name().into(), due);
        }
    }
}

fn lasting(table: &Table) -> HashMap<Arc<str>, Duration> {
    let stored = table
        .iter()
        .filter(|serving| matches!(serving, Serving::Stored(_)));
    stored
        .filter_map(|serving| {
            let kind = serving.kind();
            let lasts = Duration::from_secs(kind.policy.ttl_seconds?);
            Some((Arc::from(kind.store.as_str()), lasts))
        })
        .collect()
}

/// Deletes what is over.
pub(crate) struct Worker {
    client: Client,
    lines: Arc<Lines>,
}

impl Worker {
    pub(crate) fn new(client: &Client, lines: Arc<Lines>) -> Worker {
        Worker {
            client: client.named("expiry-controller"),
            lines,
        }
    }

    /// Deletes the objects of a kind whose time is over.
    pub(crate) async fn look(&self, store: Arc<str>) -> Verdict {
        let kind = {
            let table = self.client.server().catalog().table();
            of_store(&table, &store).cloned()
        };
        let Some(kind) = kind else {
            return Verdict::Done;
        };
        loop {
            let over = {
                let mut lines = self.lines.0.lock();
                let Some(line) = lines.get_mut(&store) else {
                    return Verdict::Done;
                };
                let over = line.leave(Instant::now(), AT_ONCE);
                if over.is_empty() {
                    return match line.next() {
                        Some(due) => Verdict::After(due.saturating_duration_since(Instant::now())),
                        None => Verdict::Done,
                    };
                }
                over
            };
            let mut running = JoinSet::new();
            for entry in over {
                let (client, kind) = (self.client.clone(), kind.clone());
                running.spawn(async move {
                    let outcome = delete(&client, &kind, &entry).await;
                    (entry, outcome)
                });
            }
            while let Some(ended) = running.join_next().await {
                if let Ok((entry, Err(status))) = ended {
                    tracing::debug!(key = entry.key(), %status, "an object could not be expired");
                    // Once more when everybody else had a turn.
                    if let Some(line) = self.lines.0.lock().get_mut(&store) {
                        line.join(&entry, Instant::now());
                    }
                }
            }
        }
    }
}

/// Deletes an object in the state it is known to have; one that changed has new time.
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

//! Objects of kinds that do not last: each is deleted when its time is over, counted from its last change.

use crate::Client;
use crate::feed::Listener;
use crate::kinds::{entry_path, of_store};
use crate::queue::{Queue, Verdict};
use bareboat_api::{Value, value};
use bareboat_server::Server;
use bareboat_server::kinds::catalog::{Serving, Table};
use bareboat_storage::{Entry, Event, EventKind, Resource, Store};
use memchr::memmem;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An object in the state it had when its time began.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Mortal {
    store: Arc<str>,
    key: Arc<str>,
    revision: u64,
}

/// Notes when objects end.
pub(crate) struct Ear {
    queue: Arc<Queue<Mortal>>,
    server: Server,
    /// How long objects last, by where they are stored. Kinds that come later are custom kinds, whose objects stay.
    lasting: HashMap<Arc<str>, Duration>,
}

impl Ear {
    pub(crate) fn new(queue: Arc<Queue<Mortal>>, server: Server) -> Ear {
        Ear {
            queue,
            server,
            lasting: HashMap::new(),
        }
    }
}

impl Listener for Ear {
    fn reset(&mut self, store: &Store) {
        self.lasting = lasting(&self.server.catalog().table());
        for (name, lasts) in &self.lasting {
            for entry in store.resource(name).snapshot().range("", None) {
                // Changes since then are looked for when this time is over.
                let age = creation(entry).map_or(Duration::ZERO, age);
                let due = Instant::now() + lasts.saturating_sub(age);
                self.queue.add_at(mortal(name, entry), due);
            }
        }
    }

    fn heard(&mut self, resource: &Arc<Resource>, event: &Event) {
        if event.kind == EventKind::Deleted {
            return;
        }
        if let Some((name, lasts)) = self.lasting.get_key_value(resource.name()) {
            self.queue
                .add_at(mortal(name, &event.entry), Instant::now() + *lasts);
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

fn mortal(store: &Arc<str>, entry: &Entry) -> Mortal {
    Mortal {
        store: store.clone(),
        key: entry.key().into(),
        revision: entry.revision(),
    }
}

/// Deletes what is over.
pub(crate) struct Worker {
    client: Client,
}

impl Worker {
    pub(crate) fn new(client: &Client) -> Worker {
        Worker {
            client: client.named("expiry-controller"),
        }
    }

    pub(crate) async fn look(&self, mortal: Mortal) -> Verdict {
        let server = self.client.server();
        let Some(entry) = server.store().resource(&mortal.store).get(&mortal.key) else {
            return Verdict::Done;
        };
        // It changed meanwhile, and its time began anew.
        if entry.revision() != mortal.revision {
            return Verdict::Done;
        }
        let (path, lasts) = {
            let table = server.catalog().table();
            let Some(kind) = of_store(&table, &mortal.store) else {
                return Verdict::Done;
            };
            let lasts = kind.policy.ttl_seconds.map(Duration::from_secs);
            (entry_path(kind, &entry), lasts)
        };
        let (Some(path), Some(lasts)) = (path, lasts) else {
            return Verdict::Done;
        };
        if let Some(left) = last_change(&entry).and_then(|age| lasts.checked_sub(age))
            && !left.is_zero()
        {
            return Verdict::After(left);
        }
        let options = value!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {
                "uid": (&*entry.facets().uid),
                "resourceVersion": (entry.revision().to_string()),
            },
        });
        match self.client.remove(&path, &options).await {
            Ok(()) => Verdict::Done,
            Err(status) if status.code == 409 => Verdict::Done,
            Err(status) => {
                tracing::debug!(%path, %status, "an object could not be expired");
                Verdict::Retry
            }
        }
    }
}

/// When an object was created, without reading all of it.
fn creation(entry: &Entry) -> Option<&str> {
    const MEMBER: &[u8] = br#""creationTimestamp":""#;
    let json = entry.json();
    let from = memmem::find(json, MEMBER)? + MEMBER.len();
    let length = json[from..].iter().position(|byte| *byte == b'"')?;
    std::str::from_utf8(&json[from..from + length]).ok()
}

/// How long ago an object was last changed, as far as its managed fields tell.
fn last_change(entry: &Entry) -> Option<Duration> {
    let object = bareboat_wire::json::parse(entry.json()).ok()?.value;
    let managed = object.at(&["metadata", "managedFields"]);
    let times = managed.and_then(Value::as_array).unwrap_or(&[]).iter();
    let times = times.filter_map(|manager| manager.get("time")?.as_str());
    times.chain(creation(entry)).map(age).min()
}

fn age(time: &str) -> Duration {
    match time.parse::<jiff::Timestamp>() {
        Ok(time) => {
            let passed = jiff::Timestamp::now().duration_since(time);
            Duration::try_from(passed).unwrap_or(Duration::ZERO)
        }
        Err(_) => Duration::ZERO,
    }
}

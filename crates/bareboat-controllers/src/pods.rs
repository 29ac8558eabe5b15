//! Deletes pods whose grace period is over, on servers without kubelets.
//!
//! A kubelet would delete a pod when its containers have ended. Here the grace period decides alone.

use crate::Client;
use crate::controller::Controller;
use crate::feed::Listener;
use crate::identity::Identity;
use crate::kinds::{entry_path, is_deleting, of_store};
use crate::options::Options;
use crate::queue::{Queue, Verdict};
use crate::startup::Context;
use bareboat_api::value;
use bareboat_server::Server;
use bareboat_server::kinds::catalog::Table;
use bareboat_storage::{Entry, Event, EventKind, Resource, Store};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An object in its grace period.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct GracefulDeletion {
    store: Arc<str>,
    key: Arc<str>,
}

/// Queues each deleted pod for the end of its grace period.
pub(crate) struct PodListener {
    queue: Arc<Queue<GracefulDeletion>>,
    server: Server,
}

impl PodListener {
    fn schedule(&self, store: &str, entry: &Entry) {
        let deletion = GracefulDeletion {
            store: store.into(),
            key: entry.key().into(),
        };
        self.queue.add_at(deletion, Instant::now() + left(entry));
    }
}

impl Listener for PodListener {
    fn reset(&mut self, store: &Store) {
        let table = self.server.catalog().table();
        let graceful = table
            .iter()
            .filter(|backing| backing.kind().policy.graceful_deletion);
        for backing in graceful {
            let name = &backing.kind().store;
            for entry in store.resource(name).snapshot().range("", None) {
                // Without a grace period, too: the server may have ended in the middle of a deletion.
                if is_ending(entry) {
                    self.schedule(name, entry);
                }
            }
        }
    }

    fn on_event(&mut self, resource: &Arc<Resource>, event: &Event) {
        if event.kind != EventKind::Deleted && has_grace(&event.entry) {
            let graceful = {
                let table = self.server.catalog().table();
                let kind = of_store(&table, resource.name());
                kind.is_some_and(|kind| kind.policy.graceful_deletion)
            };
            if graceful {
                self.schedule(resource.name(), &event.entry);
            }
        }
    }
}

/// Whether an object is being deleted, with a grace period or without.
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

/// Deletes pods at the end of their grace period.
pub(crate) struct PodReaper {
    client: Client,
}

impl Controller for PodReaper {
    const NAME: &'static str = "pods";
    const MANAGER: &'static str = "pod-reaper";
    const PARALLEL: usize = 16;
    type Key = GracefulDeletion;
    type Listener = PodListener;

    fn identity(table: &Table) -> Identity {
        Identity::deleting("bareboat-pod-reaper", table, |kind| {
            kind.policy.graceful_deletion
        })
    }

    fn has_work(server: &Server, _: &Options) -> bool {
        let table = server.catalog().table();
        table
            .iter()
            .any(|backing| backing.kind().policy.graceful_deletion)
    }

    fn new(
        context: &mut Context<'_>,
        queue: Arc<Queue<GracefulDeletion>>,
    ) -> (PodReaper, PodListener) {
        let client = context.client.clone();
        let server = context.server.clone();
        (PodReaper { client }, PodListener { queue, server })
    }

    async fn reconcile(&self, deletion: GracefulDeletion) -> Verdict {
        let server = self.client.server();
        let Some(entry) = server.store().resource(&deletion.store).get(&deletion.key) else {
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
            of_store(&table, &deletion.store).and_then(|kind| entry_path(kind, &entry))
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
                tracing::debug!(%path, %status, "cannot delete a pod at the end of its grace period");
                Verdict::Retry
            }
        }
    }
}

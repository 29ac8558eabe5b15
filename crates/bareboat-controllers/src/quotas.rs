//! Resource quotas: writes that would exceed a quota are refused, and the status of a quota shows what is used.
//!
//! `usage` holds the usage of each namespace that has quotas: the sum over stored objects, updated by the feed, and
//! reservations of writes that are not finished. A write reserves what it needs before it is stored and releases it if it
//! fails, so that concurrent writes cannot exceed a quota. Namespaces without quotas cost nothing.
//!
//! How much of a quota an object uses is decided in `bareboat_builtin::quota`.

mod gate;
mod status;
mod usage;

pub(crate) use status::QuotaController;

use crate::feed::Listener;
use crate::queue::Queue;
use bareboat_server::Server;
use bareboat_storage::{Event, Observer, Resource, Snapshot, Store};
use gate::QuotaGate;
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use usage::NamespaceUsage;

/// The store resource of ResourceQuotas.
const QUOTAS: &str = "core/resourcequotas";

/// The namespaces that have quotas, with their usage.
#[derive(Default)]
pub(crate) struct QuotaNamespaces {
    /// Whether any quota exists. Every write reads this.
    any: AtomicBool,
    /// The revision up to which usage has all changes.
    followed: AtomicU64,
    by_namespace: RwLock<HashMap<Arc<str>, Arc<NamespaceUsage>>>,
}

impl QuotaNamespaces {
    /// The usage of a namespace, if it has quotas.
    fn of(&self, namespace: &str) -> Option<Arc<NamespaceUsage>> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        self.by_namespace.read().get(namespace).cloned()
    }

    /// Notes that the quotas of a namespace changed. The next user of its usage reads them again.
    fn mark_stale(&self, namespace: &str) {
        let mut namespaces = self.by_namespace.write();
        let usage = match namespaces.get(namespace) {
            Some(usage) => usage,
            None => namespaces.entry(namespace.into()).or_default(),
        };
        usage.mark_stale();
        self.any.store(true, Ordering::Release);
    }

    /// Removes a namespace that has no quotas any more.
    fn remove(&self, namespace: &str) {
        let mut namespaces = self.by_namespace.write();
        // A quota may have been created at the same time.
        if namespaces
            .get(namespace)
            .is_some_and(|usage| !usage.is_stale())
        {
            namespaces.remove(namespace);
        }
        self.any.store(!namespaces.is_empty(), Ordering::Release);
    }

    fn all(&self) -> Vec<(Arc<str>, Arc<NamespaceUsage>)> {
        let namespaces = self.by_namespace.read();
        let all = namespaces.iter();
        all.map(|(name, usage)| (name.clone(), usage.clone()))
            .collect()
    }
}

/// Called inside the commit, so that a quota is enforced before its creator gets the response.
impl Observer for QuotaNamespaces {
    fn reset(&self, snapshot: &Snapshot) {
        for entry in snapshot.range("", None) {
            self.mark_stale(entry.namespace().unwrap_or_default());
        }
    }

    fn changed(&self, event: &Arc<Event>) {
        self.mark_stale(event.entry.namespace().unwrap_or_default());
    }
}

/// Quotas are enforced as long as this exists.
pub(crate) struct Enforcement {
    pub(crate) namespaces: Arc<QuotaNamespaces>,
    store: Store,
    // The server has only a weak reference.
    _gate: Arc<QuotaGate>,
}

impl Enforcement {
    /// Begins to enforce the quotas of a server.
    pub(crate) fn begin(server: &Server) -> Enforcement {
        let namespaces = Arc::new(QuotaNamespaces::default());
        let store = server.store().clone();
        let gate = Arc::new(QuotaGate::new(namespaces.clone(), store.clone()));
        store.observe(QUOTAS, namespaces.clone());
        server.validate_with(&(gate.clone() as _));
        Enforcement {
            namespaces,
            store,
            _gate: gate,
        }
    }
}

impl Drop for Enforcement {
    fn drop(&mut self) {
        let observer: Arc<dyn Observer> = self.namespaces.clone();
        self.store.resource(QUOTAS).unobserve(&observer);
    }
}

/// Keeps usage up to date.
pub(crate) struct QuotaListener {
    namespaces: Arc<QuotaNamespaces>,
    queue: Arc<Queue<Arc<str>>>,
    store: Store,
}

impl Listener for QuotaListener {
    fn reset(&mut self, store: &Store) {
        // Read before anything is counted.
        let seen = store.visible();
        for (namespace, usage) in self.namespaces.all() {
            usage.require_recount();
            self.queue.add(namespace);
        }
        self.namespaces.followed.fetch_max(seen, Ordering::AcqRel);
    }

    fn on_event(&mut self, resource: &Arc<Resource>, event: &Event) {
        self.count(resource, event);
        (self.namespaces.followed).fetch_max(event.rev, Ordering::AcqRel);
    }
}

impl QuotaListener {
    fn count(&self, resource: &Arc<Resource>, event: &Event) {
        let Some(namespace) = event.entry.namespace() else {
            return;
        };
        let is_quota = resource.name() == QUOTAS;
        let Some(usage) = self.namespaces.of(namespace) else {
            return;
        };
        let changed = usage
            .current(&self.store, namespace)
            .apply_event(resource.name(), event);
        // A change of a quota may be one of its status, which only this controller writes.
        if changed || is_quota {
            self.queue.add(namespace.into());
        }
    }
}

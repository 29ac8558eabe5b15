//! Resource quotas: what a namespace may hold, refused where it would become more, and told in the status of the quota.
//!
//! Usage is kept in `books`, one account a namespace that has quotas: the sum over what is stored, kept up to date by
//! the feed, and shares held by writes on their way. A write takes its share before it is stored and gives it back if it
//! is not, so that no number of writers at once gets past a quota. Namespaces without quotas cost nothing.
//!
//! What objects take is told by `bareboat_builtin::quota`.

mod books;
mod gate;
mod status;

pub(crate) use status::Worker;

use crate::feed::Listener;
use crate::queue::Queue;
use bareboat_server::Server;
use bareboat_storage::{Event, Observer, Resource, Snapshot, Store};
use books::Account;
use gate::Gate;
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where quotas are stored.
const QUOTAS: &str = "core/resourcequotas";

/// The accounts of namespaces that have quotas.
#[derive(Default)]
pub(crate) struct Accounts {
    /// Whether there is any: asked by every write.
    any: AtomicBool,
    by_namespace: RwLock<HashMap<Arc<str>, Arc<Account>>>,
}

impl Accounts {
    /// The account of a namespace, if it has quotas.
    fn of(&self, namespace: &str) -> Option<Arc<Account>> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        self.by_namespace.read().get(namespace).cloned()
    }

    /// The quotas of a namespace changed: whoever looks next reads them again.
    fn doubt(&self, namespace: &str) {
        let mut accounts = self.by_namespace.write();
        let account = match accounts.get(namespace) {
            Some(account) => account,
            None => accounts.entry(namespace.into()).or_default(),
        };
        account.doubt();
        self.any.store(true, Ordering::Release);
    }

    /// Forgets a namespace that has no quotas any more.
    fn close(&self, namespace: &str) {
        let mut accounts = self.by_namespace.write();
        // A quota may have come this very moment.
        if accounts
            .get(namespace)
            .is_some_and(|account| !account.is_doubtful())
        {
            accounts.remove(namespace);
        }
        self.any.store(!accounts.is_empty(), Ordering::Release);
    }

    fn all(&self) -> Vec<(Arc<str>, Arc<Account>)> {
        let accounts = self.by_namespace.read();
        let all = accounts.iter();
        all.map(|(name, account)| (name.clone(), account.clone()))
            .collect()
    }
}

/// Told inside the commit, so that a quota is in force when its creator learns that it was stored.
impl Observer for Accounts {
    fn reset(&self, snapshot: &Snapshot) {
        for entry in snapshot.range("", None) {
            self.doubt(entry.namespace().unwrap_or_default());
        }
    }

    fn changed(&self, event: &Arc<Event>) {
        self.doubt(event.entry.namespace().unwrap_or_default());
    }
}

/// Quotas are in force as long as this lives.
pub(crate) struct Enforcement {
    pub(crate) accounts: Arc<Accounts>,
    store: Store,
    // The server only knows it as long as somebody holds it.
    _gate: Arc<Gate>,
}

impl Enforcement {
    /// Puts the quotas of a server into force.
    pub(crate) fn begin(server: &Server) -> Enforcement {
        let accounts = Arc::new(Accounts::default());
        let store = server.store().clone();
        let gate = Arc::new(Gate::new(accounts.clone(), store.clone()));
        store.observe(QUOTAS, accounts.clone());
        server.validate_with(&(gate.clone() as _));
        Enforcement {
            accounts,
            store,
            _gate: gate,
        }
    }
}

impl Drop for Enforcement {
    fn drop(&mut self) {
        let observer: Arc<dyn Observer> = self.accounts.clone();
        self.store.resource(QUOTAS).unobserve(&observer);
    }
}

/// Keeps the books.
pub(crate) struct Ear {
    accounts: Arc<Accounts>,
    queue: Arc<Queue<Arc<str>>>,
    store: Store,
}

impl Ear {
    pub(crate) fn new(accounts: Arc<Accounts>, queue: Arc<Queue<Arc<str>>>, store: Store) -> Ear {
        Ear {
            accounts,
            queue,
            store,
        }
    }
}

impl Listener for Ear {
    fn reset(&mut self, _: &Store) {
        for (namespace, account) in self.accounts.all() {
            account.distrust();
            self.queue.add(namespace);
        }
    }

    fn heard(&mut self, resource: &Arc<Resource>, event: &Event) {
        let Some(namespace) = event.entry.namespace() else {
            return;
        };
        let is_quota = resource.name() == QUOTAS;
        let Some(account) = self.accounts.of(namespace) else {
            return;
        };
        let moved = account
            .open(&self.store, namespace)
            .heard(resource.name(), event);
        // A quota itself is looked at as well: nobody else may set its status.
        if moved || is_quota {
            self.queue.add(namespace.into());
        }
    }
}

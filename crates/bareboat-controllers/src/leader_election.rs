//! Elects one server among those that share a store. Its controllers work, and those of the others wait.
//!
//! The leader holds the Lease `kube-system/bareboat-controllers` and renews it. Another server takes the Lease if it was
//! released, or if it did not change for as long as it is valid. That time is measured by the clock of the server that
//! waits, from the moment it saw the last change, so clocks need not agree. A server that was paused may believe for a
//! moment that it still leads. This does no harm: every write of a controller has preconditions.

mod metrics;
mod notes;

pub(crate) use metrics::publish;
pub(crate) use notes::Notes;
pub use notes::{ADDRESS, LEASE, LEASES};

use crate::Client;
use crate::controller::Controller;
use crate::feed::Listener;
use crate::identity::Identity;
use crate::kinds::{join, read};
use crate::options::Options;
use crate::queue::{Queue, Verdict};
use crate::startup::Context;
use bareboat_api::{Object, Status, Value, value};
use bareboat_server::Server;
use bareboat_server::kinds::catalog::Table;
use bareboat_storage::{Entry, Event, Resource, Store};
use jiff::Timestamp;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::watch;

const PATH: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
const NAMESPACE: &str = "kube-system";
const NAME: &str = "bareboat-controllers";

/// How long a Lease is valid that its holder does not renew.
const VALID: Duration = Duration::from_secs(15);
/// How long a leader tries to renew it before it stops to lead.
const RENEW_WITHIN: Duration = Duration::from_secs(10);
/// The time between two tries.
const PERIOD: Duration = Duration::from_secs(2);
/// How long a server that ends waits until it has released the Lease.
const RELEASE_WITHIN: Duration = Duration::from_secs(2);
/// The time between two tries to release it.
const AGAIN: Duration = Duration::from_millis(10);

/// Whether the controllers of this server work.
#[derive(Clone, Debug)]
pub(crate) struct Leadership {
    leads: watch::Sender<bool>,
    /// What the Lease says about its holder.
    notes: Notes,
    /// The revision with which this server took the Lease; 0 before it did.
    term: Arc<AtomicU64>,
}

impl Leadership {
    /// The only server of its store leads from the start.
    pub(crate) fn new(leads: bool) -> Leadership {
        Leadership {
            leads: watch::Sender::new(leads),
            notes: Notes::default(),
            term: Arc::default(),
        }
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<bool> {
        self.leads.subscribe()
    }

    /// Returns what the Lease says about its holder.
    pub(crate) fn notes(&self) -> &Notes {
        &self.notes
    }

    /// Returns the revision with which this server last took the Lease.
    pub(crate) fn term(&self) -> Arc<AtomicU64> {
        self.term.clone()
    }

    fn leads(&self) -> bool {
        *self.leads.borrow()
    }

    /// Leads from now on. No other server ever has the same term.
    fn take(&self, term: u64) {
        if !self.leads() {
            self.term.store(term, Ordering::Release);
        }
        self.set(true);
    }

    fn set(&self, leads: bool) {
        let changed = self.leads.send_if_modified(|now| {
            let changed = *now != leads;
            *now = leads;
            changed
        });
        match (changed, leads) {
            (true, true) => tracing::info!("the controllers of this server lead"),
            (true, false) => tracing::info!("the controllers of this server wait for the leader"),
            (false, _) => {}
        }
    }
}

/// Takes part in the election.
pub(crate) struct Elector {
    state: Arc<State>,
}

struct State {
    client: Client,
    leadership: Leadership,
    /// The name of this server in the Lease.
    holder: String,
    seen: Mutex<Seen>,
    /// Held while this server takes or renews the Lease.
    writing: Arc<tokio::sync::Mutex<()>>,
}

/// What is known about the Lease.
struct Seen {
    /// Its revision, and when this server saw it first.
    revision: u64,
    since: Instant,
    /// When this server last wrote it.
    renewed: Option<Instant>,
    /// The server ends, and does not take it again.
    ended: bool,
}

impl Controller for Elector {
    const NAME: &'static str = "leader-election";
    const MANAGER: &'static str = "bareboat-leader-election";
    const PARALLEL: usize = 1;
    const EVERYWHERE: bool = true;
    type Key = ();
    type Listener = LeaseListener;

    fn identity(_: &Table) -> Identity {
        let rules = ["create update | coordination.k8s.io | leases"];
        Identity::own("bareboat-leader-election", &[]).and_in(NAMESPACE, &rules)
    }

    fn has_work(server: &Server, _: &Options) -> bool {
        let table = server.catalog().table();
        server.store().is_shared() && table.find("coordination.k8s.io", "leases").is_some()
    }

    fn new(context: &mut Context<'_>, queue: Arc<Queue<()>>) -> (Elector, LeaseListener) {
        let host = context.options.hostname.as_deref().unwrap_or("bareboat");
        let state = Arc::new(State {
            client: context.client.clone(),
            leadership: context.leadership.clone(),
            holder: format!("{host}_{}", uuid::Uuid::new_v4()),
            seen: Mutex::new(Seen {
                revision: 0,
                since: Instant::now(),
                renewed: None,
                ended: false,
            }),
            writing: Arc::default(),
        });
        let ending = state.clone();
        context.on_stop(move || {
            let state = ending.clone();
            Box::pin(async move { state.release().await })
        });
        (Elector { state }, LeaseListener { queue })
    }

    async fn reconcile(&self, (): ()) -> Verdict {
        Verdict::After(self.state.take_or_renew().await)
    }
}

impl State {
    /// Takes or renews the Lease if that is due. Returns when to look again.
    async fn take_or_renew(self: &Arc<Self>) -> Duration {
        let found = self.found();
        let (revision, lease) = match &found {
            Some((entry, lease)) => (entry.revision(), Some(lease)),
            None => (0, None),
        };
        let held = lease.is_some_and(|lease| holder(lease) == self.holder);
        let wait = {
            let mut seen = self.seen.lock();
            if seen.ended {
                return VALID;
            }
            if seen.revision != revision {
                seen.revision = revision;
                seen.since = Instant::now();
            }
            let free = lease.is_none_or(|lease| holder(lease).is_empty());
            match (held, seen.renewed) {
                (true, Some(renewed)) => PERIOD.saturating_sub(renewed.elapsed()),
                (true, None) => Duration::ZERO,
                (false, _) if free => Duration::ZERO,
                (false, _) => lease
                    .map_or(VALID, valid_for)
                    .saturating_sub(seen.since.elapsed()),
            }
        };
        if !held {
            // Another server took it, because this one did not renew it in time.
            self.leadership.set(false);
        }
        if !wait.is_zero() {
            return wait.min(PERIOD);
        }
        let writing = self.writing.clone().lock_owned().await;
        if self.seen.lock().ended {
            return VALID;
        }
        let begun = Instant::now();
        // A task of its own: when the server ends, its outcome is awaited before the Lease is released.
        let (state, lease, patience) = (self.clone(), lease.cloned(), self.patience());
        let written = tokio::spawn(async move {
            let _writing = writing;
            let write = state.write(lease.as_ref(), &state.holder, VALID);
            tokio::time::timeout(patience, write).await
        });
        match written.await {
            Ok(Ok(Ok(term))) => {
                let mut seen = self.seen.lock();
                seen.renewed = Some(begun);
                if !seen.ended {
                    self.leadership.take(term);
                }
            }
            outcome => {
                if let Ok(Ok(Err(status))) = outcome
                    && !matches!(status.code, 404 | 409)
                {
                    tracing::warn!(%status, "cannot write the Lease of the leader");
                }
                if self.patience().is_zero() {
                    self.leadership.set(false);
                }
            }
        }
        match self.leadership.leads() {
            true => PERIOD,
            // A conflict is decided by the next look.
            false => PERIOD / 4,
        }
    }

    /// How long this server may still believe that it leads. A server that does not lead has all the time.
    fn patience(&self) -> Duration {
        let renewed = self.seen.lock().renewed;
        match renewed.filter(|_| self.leadership.leads()) {
            Some(renewed) => RENEW_WITHIN.saturating_sub(renewed.elapsed()),
            None => RENEW_WITHIN,
        }
    }

    fn found(&self) -> Option<(Arc<Entry>, Object)> {
        let leases = self.client.server().store().resource(LEASES);
        let entry = leases.get(&format!("{NAMESPACE}/{NAME}"))?;
        let lease = read(&entry).ok()?;
        Some((entry, lease))
    }

    /// Writes the Lease, if it did not change since it was read. Returns its revision.
    async fn write(
        &self,
        lease: Option<&Object>,
        holder: &str,
        valid: Duration,
    ) -> Result<u64, Status> {
        let now = Timestamp::now()
            .strftime("%Y-%m-%dT%H:%M:%S%.6fZ")
            .to_string();
        let before = lease.and_then(|lease| lease.at(&["spec"]));
        let text = |name: &str| before.and_then(|spec| spec.get(name)?.as_str());
        let transitions = before.and_then(|spec| spec.get("leaseTransitions")?.as_i64());
        let same = text("holderIdentity") == Some(holder);
        let acquired = text("acquireTime").filter(|_| same).unwrap_or(&now);
        let spec = value!({
            "holderIdentity": holder,
            "leaseDurationSeconds": (valid.as_secs() as i64),
            "acquireTime": acquired,
            "renewTime": (now.as_str()),
            "leaseTransitions": (transitions.unwrap_or(0) + i64::from(!same && before.is_some())),
        });
        let notes = match holder.is_empty() {
            true => Notes::default(),
            false => self.leadership.notes.clone(),
        };
        let written = match lease {
            None => {
                let lease = value!({
                    "apiVersion": "coordination.k8s.io/v1",
                    "kind": "Lease",
                    "metadata": {"name": NAME, "namespace": NAMESPACE},
                    "spec": spec,
                });
                let mut lease = Object::try_from(lease).unwrap_or_default();
                notes.write(&mut lease);
                self.client.create(PATH, lease.value()).await?
            }
            Some(lease) => {
                let mut lease = lease.clone();
                lease.map_mut().insert("spec", spec);
                notes.write(&mut lease);
                self.client.update(&join(PATH, NAME), lease.value()).await?
            }
        };
        let version = written.at(&["metadata", "resourceVersion"]);
        let version = version.and_then(|version| version.as_str()?.parse().ok());
        version.ok_or_else(|| Status::internal("the Lease has no resourceVersion"))
    }

    /// Releases the Lease, so that another server leads at once.
    async fn release(&self) {
        self.seen.lock().ended = true;
        self.leadership.set(false);
        let released = async {
            // The Lease may be taken at this moment, even for the first time.
            let _written = self.writing.lock().await;
            self.give_back().await
        };
        // If this fails, another server takes it when it is no longer valid.
        match tokio::time::timeout(RELEASE_WITHIN, released).await {
            Ok(Ok(())) => {}
            Ok(Err(status)) => tracing::debug!(%status, "cannot release the Lease of the leader"),
            Err(_) => tracing::debug!("cannot release the Lease of the leader in time"),
        }
    }

    /// Clears the holder of the Lease. Tries again after a conflict, while this server is the holder.
    async fn give_back(&self) -> Result<(), Status> {
        loop {
            let held = self
                .found()
                .filter(|(_, lease)| holder(lease) == self.holder);
            let Some((_, lease)) = held else {
                return Ok(());
            };
            match self.write(Some(&lease), "", Duration::from_secs(1)).await {
                // A renewal that was under way came first.
                Err(status) if status.code == 409 => tokio::time::sleep(AGAIN).await,
                written => return written.map(drop),
            }
        }
    }
}

fn holder(lease: &Object) -> &str {
    let holder = lease.at(&["spec", "holderIdentity"]);
    holder.and_then(Value::as_str).unwrap_or("")
}

fn valid_for(lease: &Object) -> Duration {
    let seconds = lease.at(&["spec", "leaseDurationSeconds"]);
    let seconds = seconds
        .and_then(Value::as_i64)
        .and_then(|seconds| u64::try_from(seconds).ok());
    seconds.map_or(VALID, Duration::from_secs)
}

/// Notices every change of the Lease.
pub(crate) struct LeaseListener {
    queue: Arc<Queue<()>>,
}

impl Listener for LeaseListener {
    fn reset(&mut self, _: &Store) {
        self.queue.add(());
    }

    fn on_event(&mut self, resource: &Arc<Resource>, event: &Event) {
        if resource.name() == LEASES
            && event.entry.namespace() == Some(NAMESPACE)
            && event.entry.name() == NAME
        {
            self.queue.add(());
        }
    }
}

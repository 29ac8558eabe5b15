//! Several servers of one store: the leader syncs members to its own shelf, and the others forward requests to it.
//!
//! The Lease of the leader says where it is. A server that becomes the leader counts its versions apart from those of all others,
//! then looks at all members; until it has heard of each of them, or a few seconds have passed, it asks clients to wait. Otherwise
//! they would take a shelf that is being filled for an empty one.

use crate::members::table::Table;
use bareboat_api::{Object, Status, Value};
use bareboat_controllers::{LEADER_ADDRESS, LEADER_LEASE, LEASES};
use bareboat_server::{Upstream, UpstreamTrust};
use bareboat_storage::Store;
use bareboat_views::Place;
use parking_lot::{Mutex, RwLock};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// On the Lease of the leader: it syncs members and answers requests to the views.
pub const SERVES: &str = "fleet.bareboat.dev/leader";

/// How long the leader may take to begin an answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a new leader waits for its members.
const SETTLE: Duration = Duration::from_secs(5);
/// How long a request waits for a server that has just started.
const AT_START: Duration = Duration::from_secs(2);
/// How often both look.
const LOOK: Duration = Duration::from_millis(50);

/// What a server must know about the others of its store.
#[derive(Clone, Debug)]
pub struct Peers {
    /// The term of this server: the number with which it last became the leader.
    pub term: Arc<AtomicU64>,
    /// The CAs of the other servers' certificates, in PEM.
    pub authorities: String,
    /// A name that their certificates have; `None` for the addresses.
    pub name: Option<String>,
}

/// The part that this server has among the others.
#[derive(Default)]
pub(crate) struct Part {
    among: RwLock<Option<Arc<Among>>>,
    /// Whether this server has started and not looked at its members yet.
    begins: AtomicBool,
}

/// A server among others.
struct Among {
    peers: Peers,
    store: Store,
    leads: watch::Receiver<bool>,
    /// The term in which this server answers, because it has heard of its members.
    settled: AtomicU64,
    /// The leader that was last forwarded to.
    leader: Mutex<Option<(SocketAddr, Upstream)>>,
}

impl Part {
    /// Takes a part among others.
    pub(crate) fn join(&self, peers: Peers, store: Store, leads: watch::Receiver<bool>) {
        *self.among.write() = Some(Arc::new(Among {
            peers,
            store,
            leads,
            settled: AtomicU64::new(0),
            leader: Mutex::default(),
        }));
    }

    fn among(&self) -> Option<Arc<Among>> {
        self.among.read().clone()
    }

    /// Returns the term of this server; `None` if it is alone.
    pub(crate) fn term(&self) -> Option<u64> {
        self.among().map(|among| among.term())
    }

    /// Answers from now on, as soon as all members were heard or some time has passed.
    pub(crate) fn settle(&self, term: u64, table: &Arc<Table>) {
        let Some(among) = self.among() else {
            return;
        };
        let table = table.clone();
        tokio::spawn(async move {
            let all = async {
                while !table.all().iter().all(|state| state.is_settled()) {
                    tokio::time::sleep(LOOK).await;
                }
            };
            // A member that does not answer must not keep the others away.
            let _ = tokio::time::timeout(SETTLE, all).await;
            among.settled.fetch_max(term, Ordering::AcqRel);
        });
    }

    /// Answers for all members, as soon as it has looked at them.
    pub(crate) fn begin(&self) {
        self.begins.store(true, Ordering::Release);
    }

    /// This server has looked at its members.
    pub(crate) fn begun(&self) {
        self.begins.store(false, Ordering::Release);
    }

    /// Waits for a short time until this server has looked at its members.
    pub(crate) async fn looked(&self) {
        let until = Instant::now() + AT_START;
        while self.begins.load(Ordering::Acquire) && Instant::now() < until {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Returns which server answers requests.
    pub(crate) fn place(&self) -> Place {
        if self.begins.load(Ordering::Acquire) {
            return Place::Nowhere(wait(
                "this server has just started, and its members are not known yet; try again in a few seconds",
            ));
        }
        match self.among() {
            None => Place::Here,
            Some(among) => among.place(),
        }
    }

    /// Waits until this server does not lead any more.
    pub(crate) async fn left(&self) {
        let Some(among) = self.among() else {
            return std::future::pending().await;
        };
        let _ = among.leads.clone().wait_for(|leads| !leads).await;
    }
}

impl Among {
    fn term(&self) -> u64 {
        self.peers.term.load(Ordering::Acquire)
    }

    fn place(&self) -> Place {
        if !*self.leads.borrow() {
            return self
                .there()
                .unwrap_or_else(|why| Place::Nowhere(wait(&why)));
        }
        match self.settled.load(Ordering::Acquire) == self.term() {
            true => Place::Here,
            false => Place::Nowhere(wait(
                "this server has just begun to lead the fleet, and its members are not known yet; try again in a few seconds",
            )),
        }
    }

    /// Returns where the leader is.
    fn there(&self) -> Result<Place, String> {
        let entry = self.store.resource(LEASES).get(LEADER_LEASE);
        let lease = entry.and_then(|entry| crate::members::controller::read(&entry));
        let holder = |lease: &Object| {
            let holder = lease.at(&["spec", "holderIdentity"]);
            holder
                .and_then(Value::as_str)
                .is_some_and(|name| !name.is_empty())
        };
        let lease = lease.filter(holder).ok_or(
            "no server leads the fleet at the moment; another one takes over within 15 seconds",
        )?;
        let address = lease.annotation(LEADER_ADDRESS);
        let address: Option<SocketAddr> = address.and_then(|text| text.parse().ok());
        let address = address.ok_or(
            "the server that leads has not said yet where it listens; try again in a few seconds",
        )?;
        if lease.annotation(SERVES) != Some("true") {
            return Err(format!(
                "the server that leads, {address}, has no fleet; start all servers of the store with --fleet"
            ));
        }
        let mut known = self.leader.lock();
        if let Some((_, there)) = known.as_ref().filter(|(at, _)| *at == address) {
            return Ok(Place::There(there.clone()));
        }
        let name = match &self.peers.name {
            Some(name) => name.clone(),
            None => address.ip().to_string(),
        };
        let trust = UpstreamTrust::Bundle(self.peers.authorities.clone());
        let there = Upstream::peer(address, &name, &trust, PATIENCE);
        *known = Some((address, there.clone()));
        Ok(Place::There(there))
    }
}

/// Returns 503, with a time to try again after.
fn wait(why: &str) -> Status {
    Status::unavailable(why).retry_after(1)
}

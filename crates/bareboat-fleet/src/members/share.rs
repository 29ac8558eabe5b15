//! The share of a server in a fleet whose shelf several servers use: the members that it syncs.
//!
//! Every few seconds a server says that it lives, tells what it knows about its members, and learns who syncs which one. A server
//! that cannot do so for a while syncs nothing. The shelf refuses what a server writes after another one has taken a member over.

use bareboat_shelf::{Lease, Shelf};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How often leases are renewed.
pub(crate) const RENEW: Duration = Duration::from_secs(3);
/// How long leases last here without being renewed. Others take them a little later.
const LASTS: Duration = Duration::from_secs(12);

/// Returns a name for a server that no other one has.
pub(crate) fn hub_name() -> String {
    let random = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", random(), random())
}

/// The leases of all members, as far as they are known.
pub(crate) struct Share {
    hub: String,
    leases: BTreeMap<String, Lease>,
    renewed: Instant,
}

impl Share {
    pub(crate) fn new(hub: &str) -> Share {
        Share {
            hub: hub.to_owned(),
            leases: BTreeMap::new(),
            renewed: Instant::now(),
        }
    }

    /// Returns whether this server syncs a member.
    pub(crate) fn holds(&self, name: &str) -> bool {
        let lease = self.leases.get(name);
        lease.is_some_and(|lease| lease.holder == self.hub)
    }

    /// Returns the lease of a member.
    pub(crate) fn lease(&self, name: &str) -> Option<&Lease> {
        self.leases.get(name)
    }

    /// Renews the leases with what is told about members, and returns the members for which something changed.
    pub(crate) async fn renew(
        &mut self,
        shelf: &Arc<Shelf>,
        notes: Vec<(i64, String)>,
    ) -> BTreeSet<String> {
        let (hub, shelf) = (self.hub.clone(), shelf.clone());
        let begun = Instant::now();
        let leased = tokio::task::spawn_blocking(move || shelf.lease(&hub, &notes)).await;
        let leases = match leased {
            Ok(Ok(leases)) => leases,
            Ok(Err(error)) => {
                tracing::warn!(%error, cause = ?std::error::Error::source(&error), "the leases of members cannot be renewed");
                return self.expire();
            }
            Err(_) => return self.expire(),
        };
        self.renewed = begun;
        let leases: BTreeMap<String, Lease> = leases
            .into_iter()
            .map(|lease| (lease.name.clone(), lease))
            .collect();
        let before = std::mem::replace(&mut self.leases, leases);
        let changed = self.leases.iter().filter(|(name, lease)| {
            let old = before.get(*name);
            let other = lease.holder != self.hub;
            old.is_none_or(|old| {
                (&old.holder, old.term) != (&lease.holder, lease.term)
                    || other && old.note != lease.note
            })
        });
        let mut due: BTreeSet<String> = changed.map(|(name, _)| name.clone()).collect();
        let gone = before
            .into_keys()
            .filter(|name| !self.leases.contains_key(name));
        due.extend(gone);
        due
    }

    /// Gives leases up that were not renewed for too long.
    fn expire(&mut self) -> BTreeSet<String> {
        if self.renewed.elapsed() < LASTS {
            return BTreeSet::new();
        }
        let mut due = BTreeSet::new();
        for (name, lease) in &mut self.leases {
            if lease.holder == self.hub {
                lease.holder.clear();
                due.insert(name.clone());
            }
        }
        due
    }
}

//! The servers of a shared store. Each keeps a Lease with its address, and a Lease that its server does not renew is
//! deleted.
//!
//! A Lease is valid as long as it changes. That is measured by the clock of the server that looks, from the moment it
//! saw the last change, so clocks need not agree.

use crate::Client;
use crate::kinds::{join, read};
use bareboat_api::{Status, value};
use bareboat_storage::{Entry, Event, Resource};
use jiff::Timestamp;
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

const PATH: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
const LEASES: &str = "coordination.k8s.io/leases";
const NAMESPACE: &str = "kube-system";
/// The names of the Leases begin with this.
const PREFIX: &str = "bareboat-endpoint-";
/// How long a Lease is valid without renewal.
const VALID: Duration = Duration::from_secs(15);
/// The time between two renewals.
const PERIOD: Duration = Duration::from_secs(5);
/// How long a server that ends tries to delete its Lease.
const LEAVE_WITHIN: Duration = Duration::from_secs(2);

/// The rights on Leases that this needs, in the namespace `kube-system`.
pub(super) const RIGHTS: (&str, &str) = (
    NAMESPACE,
    "create delete update | coordination.k8s.io | leases",
);

/// Finds the running servers, and makes this one known to the others.
pub(super) struct Servers {
    client: Client,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The name of the own Lease, and when it was written.
    own: Option<(String, Instant)>,
    /// The revision of each Lease, and when this server saw it first.
    seen: HashMap<String, (u64, Instant)>,
    /// The server ends and makes itself known no more.
    ended: bool,
}

/// The Lease of a server.
struct Found {
    entry: Arc<Entry>,
    address: SocketAddr,
}

impl Servers {
    pub(super) fn new(client: Client) -> Servers {
        Servers {
            client,
            state: Mutex::default(),
        }
    }

    /// Renews the Lease of this server, and returns the addresses of all that run and when to look again.
    pub(super) async fn running(
        &self,
        own: SocketAddr,
    ) -> Result<(BTreeSet<SocketAddr>, Duration), Status> {
        let name = lease_name(own);
        let mut found = self.find();
        let is_known = found.iter().any(|found| found.entry.name() == name);
        let (is_due, ended) = {
            let state = self.state.lock();
            let written = state.own.as_ref().filter(|(known, _)| *known == name);
            let is_fresh = written.is_some_and(|(_, at)| at.elapsed() < PERIOD);
            (!(is_known && is_fresh), state.ended)
        };
        if is_due && !ended {
            let lease = found.iter().find(|found| found.entry.name() == name);
            self.renew(&name, own, lease).await?;
            self.state.lock().own = Some((name.clone(), Instant::now()));
        }
        let gone = self.split_off_gone(&mut found, &name);
        for lease in gone {
            self.remove(&lease.entry).await;
        }
        let mut running: BTreeSet<SocketAddr> = found.iter().map(|found| found.address).collect();
        match ended {
            true => running.remove(&own),
            false => running.insert(own),
        };
        Ok((running, PERIOD))
    }

    /// Deletes the Lease of this server, so that the others do not name it any more.
    pub(super) async fn leave(&self) {
        let own = {
            let mut state = self.state.lock();
            state.ended = true;
            state.own.take()
        };
        let Some((name, _)) = own else {
            return;
        };
        let options = value!({"kind": "DeleteOptions", "apiVersion": "v1"});
        let path = join(PATH, &name);
        let removed = self.client.remove(&path, &options);
        match tokio::time::timeout(LEAVE_WITHIN, removed).await {
            Ok(Ok(())) => {}
            // The others delete it when it is no longer valid.
            Ok(Err(status)) => tracing::debug!(%status, "cannot delete the Lease of this server"),
            Err(_) => tracing::debug!("cannot delete the Lease of this server in time"),
        }
    }

    fn find(&self) -> Vec<Found> {
        let leases = self.client.server().store().resource(LEASES);
        let snapshot = leases.snapshot();
        snapshot
            .range(&format!("{NAMESPACE}/{PREFIX}"), None)
            .filter_map(|entry| {
                let lease = read(entry).ok()?;
                let holder = lease.at(&["spec", "holderIdentity"])?.as_str()?;
                Some(Found {
                    entry: entry.clone(),
                    address: holder.parse().ok()?,
                })
            })
            .collect()
    }

    /// Takes the Leases out that were not renewed in time.
    fn split_off_gone(&self, found: &mut Vec<Found>, own: &str) -> Vec<Found> {
        let mut state = self.state.lock();
        let now = Instant::now();
        let mut seen = HashMap::new();
        let mut gone = Vec::new();
        for lease in std::mem::take(found) {
            let (name, revision) = (lease.entry.name(), lease.entry.revision());
            let known = state.seen.get(name).filter(|(known, _)| *known == revision);
            let since = known.map_or(now, |(_, since)| *since);
            let is_gone = name != own && now.duration_since(since) > VALID;
            seen.insert(name.to_owned(), (revision, since));
            match is_gone {
                true => gone.push(lease),
                false => found.push(lease),
            }
        }
        state.seen = seen;
        gone
    }

    async fn renew(
        &self,
        name: &str,
        own: SocketAddr,
        lease: Option<&Found>,
    ) -> Result<(), Status> {
        let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ");
        let spec = value!({
            "holderIdentity": (own.to_string()),
            "leaseDurationSeconds": (VALID.as_secs() as i64),
            "renewTime": (now.to_string()),
        });
        let Some(lease) = lease else {
            let lease = value!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {
                    "name": name,
                    "namespace": NAMESPACE,
                    // On the Lease of a server: the version of the program that holds it.
                    "annotations": {"bareboat.dev/version": (env!("CARGO_PKG_VERSION"))},
                },
                "spec": spec,
            });
            return self.client.ensure(PATH, &lease).await;
        };
        let mut object = read(&lease.entry)?;
        object.map_mut().insert("spec", spec);
        let written = self.client.update(&join(PATH, name), object.value()).await;
        written.map(|_| ())
    }

    async fn remove(&self, entry: &Entry) {
        let options = value!({
            "kind": "DeleteOptions", "apiVersion": "v1",
            "preconditions": {
                "uid": (&*entry.facets().uid),
                "resourceVersion": (entry.revision().to_string()),
            },
        });
        let path = join(PATH, entry.name());
        if let Err(status) = self.client.remove(&path, &options).await {
            tracing::debug!(%status, name = entry.name(), "cannot delete the Lease of a server that is gone");
        }
    }
}

/// Returns whether an event is about the Lease of a server.
pub(super) fn concerns(resource: &Resource, event: &Event) -> bool {
    resource.name() == LEASES
        && event.entry.namespace() == Some(NAMESPACE)
        && event.entry.name().starts_with(PREFIX)
}

fn lease_name(address: SocketAddr) -> String {
    let ip = address.ip().to_string().replace(':', "-");
    format!("{PREFIX}{ip}-{}", address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_leases_are_names_of_objects() {
        for (address, name) in [
            ("192.0.2.1:6443", "bareboat-endpoint-192.0.2.1-6443"),
            ("[2001:db8::]:1", "bareboat-endpoint-2001-db8---1"),
        ] {
            assert_eq!(lease_name(address.parse().expect("an address")), name);
        }
    }
}

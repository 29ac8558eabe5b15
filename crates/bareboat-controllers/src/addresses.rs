//! What tells of the addresses of services: an IPAddress for each, and the state of the networks they come from.
//!
//! Services are the record, and who gets which address is decided where services are written. An IPAddress is stored and goes in
//! the same commit as its service. What is left here is to put right what others do to it, and what is found at the start.

mod networks;

pub(crate) use networks::FINALIZER;

use crate::Client;
use crate::feed::Listener;
use crate::kinds::{is_deleting, read};
use crate::queue::{Queue, Verdict};
use bareboat_api::{Object, Status, value};
use bareboat_builtin::services::{self, is_managed, parent, told_of};
use bareboat_server::Server;
use bareboat_storage::{Entry, Event, EventKind, Resource, Store};
use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;

const SERVICES: &str = "core/services";
const ADDRESSES: &str = "networking.k8s.io/ipaddresses";
const NETWORKS: &str = "networking.k8s.io/servicecidrs";
const PATH: &str = "/apis/networking.k8s.io/v1/ipaddresses";

/// Something to look at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Look {
    /// A service: whether each of its addresses is told.
    Service(Arc<str>),
    /// An address that is told: whether its service still has it.
    Address(Arc<str>),
    /// A network: whether it may be used, or go.
    Network(Arc<str>),
}

/// Whether all of it is served.
pub(crate) fn has_work(server: &Server) -> bool {
    let table = server.catalog().table();
    [
        ("", "services"),
        ("networking.k8s.io", "ipaddresses"),
        ("networking.k8s.io", "servicecidrs"),
    ]
    .iter()
    .all(|(group, plural)| table.find(group, plural).is_some())
}

/// Notes what may be out of step.
pub(crate) struct Ear {
    queue: Arc<Queue<Look>>,
    /// Networks that wait for their last address to go.
    going: HashSet<Arc<str>>,
}

impl Ear {
    pub(crate) fn new(queue: Arc<Queue<Look>>) -> Ear {
        Ear {
            queue,
            going: HashSet::new(),
        }
    }

    fn address(&self, event: &Event) {
        if event.kind == EventKind::Deleted {
            // Perhaps by somebody who does not know that a service has it.
            if let Ok(Some(service)) = read(&event.entry).map(|object| parent(object.value())) {
                self.queue.add(Look::Service(service.into()));
            }
            self.look_at_going();
        } else {
            self.queue.add(Look::Address(event.key().into()));
        }
    }

    fn network(&mut self, event: &Event) {
        let name: Arc<str> = event.key().into();
        if event.kind == EventKind::Deleted {
            self.going.remove(&name);
            return;
        }
        if is_deleting(&event.entry) {
            self.going.insert(name.clone());
        }
        self.queue.add(Look::Network(name));
        // One network that comes may be what another waits for.
        self.look_at_going();
    }

    fn look_at_going(&self) {
        for name in &self.going {
            self.queue.add(Look::Network(name.clone()));
        }
    }
}

impl Listener for Ear {
    fn reset(&mut self, store: &Store) {
        self.going.clear();
        for entry in store.resource(SERVICES).snapshot().range("", None) {
            self.queue.add(Look::Service(entry.key().into()));
        }
        for entry in store.resource(ADDRESSES).snapshot().range("", None) {
            self.queue.add(Look::Address(entry.key().into()));
        }
        for entry in store.resource(NETWORKS).snapshot().range("", None) {
            let name: Arc<str> = entry.key().into();
            if is_deleting(entry) {
                self.going.insert(name.clone());
            }
            self.queue.add(Look::Network(name));
        }
    }

    fn heard(&mut self, resource: &Arc<Resource>, event: &Event) {
        match resource.name() {
            ADDRESSES => self.address(event),
            NETWORKS => self.network(event),
            _ => {}
        }
    }
}

/// The addresses of a stored service.
fn addresses(entry: &Arc<Entry>) -> Vec<IpAddr> {
    read(entry)
        .map(|service| services::addresses(service.value()))
        .unwrap_or_default()
}

/// Writes what follows from services.
pub(crate) struct Worker {
    client: Client,
    queue: Arc<Queue<Look>>,
}

impl Worker {
    pub(crate) fn new(client: &Client, queue: Arc<Queue<Look>>) -> Worker {
        Worker {
            client: client.named("kube-apiserver"),
            queue,
        }
    }

    pub(crate) async fn look(&self, look: Look) -> Verdict {
        let done = match &look {
            Look::Service(key) => self.service(key).await,
            Look::Address(name) => self.address(name).await,
            Look::Network(name) => networks::look(&self.client, name).await,
        };
        match done {
            Ok(verdict) => verdict,
            // Gone or changed meanwhile: that will be heard of.
            Err(status) if matches!(status.code, 404 | 409) => Verdict::Done,
            Err(status) => {
                tracing::warn!(?look, %status, "addresses of services could not be told");
                Verdict::Retry
            }
        }
    }

    fn store(&self) -> &Store {
        self.client.server().store()
    }

    /// Whether a service has an address now.
    fn has(&self, key: &str, address: IpAddr) -> bool {
        let entry = self.store().resource(SERVICES).get(key);
        entry.is_some_and(|entry| addresses(&entry).contains(&address))
    }

    /// Tells each address of a service.
    async fn service(&self, key: &Arc<str>) -> Result<Verdict, Status> {
        let Some(entry) = self.store().resource(SERVICES).get(key) else {
            return Ok(Verdict::Done);
        };
        for address in addresses(&entry) {
            let name = address.to_string();
            if let Some(told) = self.store().resource(ADDRESSES).get(&name) {
                let object = read(&told)?;
                if parent(object.value()).as_deref() == Some(&**key) {
                    continue;
                }
                // Whoever says that it is somebody else's is wrong, for the service has it.
                tracing::warn!(
                    address = name,
                    service = &**key,
                    "an IPAddress named another parent"
                );
                match self.remove(&name, &object).await {
                    // Somebody else was at it, too: its end is told to its parent, which is not this service.
                    Err(status) if status.code == 409 => return Ok(Verdict::Retry),
                    done => done?,
                }
            }
            self.tell(key, address).await?;
            if !self.has(key, address) {
                // The service went while this was written.
                self.queue.add(Look::Address(name.into()));
            }
        }
        Ok(Verdict::Done)
    }

    async fn tell(&self, key: &str, address: IpAddr) -> Result<(), Status> {
        let (namespace, service) = key.split_once('/').unwrap_or(("", key));
        let object = told_of(namespace, service, address);
        match self.client.create(PATH, &object).await {
            Err(status) if status.reason != "AlreadyExists" => Err(status),
            _ => Ok(()),
        }
    }

    /// Takes an address away that no service has any more.
    async fn address(&self, name: &str) -> Result<Verdict, Status> {
        let Some(entry) = self.store().resource(ADDRESSES).get(name) else {
            return Ok(Verdict::Done);
        };
        let object = read(&entry)?;
        let managed = is_managed(object.value());
        let (Some(service), Ok(address)) = (parent(object.value()), name.parse()) else {
            return Ok(Verdict::Done);
        };
        if managed && !is_deleting(&entry) && !self.has(&service, address) {
            self.remove(name, &object).await?;
        }
        Ok(Verdict::Done)
    }

    async fn remove(&self, name: &str, object: &Object) -> Result<(), Status> {
        let options = value!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {
                "uid": (object.uid()),
                "resourceVersion": (object.resource_version()),
            },
        });
        let path = crate::kinds::join(PATH, name);
        self.client.remove(&path, &options).await
    }
}

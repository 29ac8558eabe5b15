//! Keeps an IPAddress for every address of a service.
//!
//! Services decide who has which address: an IPAddress is stored and deleted in the same commit as its service. This
//! controller repairs what clients do to IPAddresses, and what it finds at the start.

use crate::Client;
use crate::controller::Controller;
use crate::feed::Listener;
use crate::identity::Identity;
use crate::kinds::{is_deleting, read};
use crate::options::Options;
use crate::queue::{Queue, Verdict};
use crate::startup::Context;
use bareboat_api::{Object, Status, value};
use bareboat_builtin::services::{self, ip_address_of, is_managed, parent};
use bareboat_server::Server;
use bareboat_server::kinds::catalog::Table;
use bareboat_storage::{Entry, Event, EventKind, Resource, Store};
use std::net::IpAddr;
use std::sync::Arc;

pub(crate) const SERVICES: &str = "core/services";
pub(crate) const ADDRESSES: &str = "networking.k8s.io/ipaddresses";
pub(crate) const NETWORKS: &str = "networking.k8s.io/servicecidrs";
const PATH: &str = "/apis/networking.k8s.io/v1/ipaddresses";

/// A check of the controller; the string is the key of the object in the store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Job {
    /// Whether each address of a service has an IPAddress.
    Service(Arc<str>),
    /// Whether the service of an IPAddress still has this address.
    Address(Arc<str>),
}

/// Whether services, IPAddresses and ServiceCIDRs are served.
pub(crate) fn serves_addresses(server: &Server) -> bool {
    let table = server.catalog().table();
    [
        ("", "services"),
        ("networking.k8s.io", "ipaddresses"),
        ("networking.k8s.io", "servicecidrs"),
    ]
    .iter()
    .all(|(group, plural)| table.find(group, plural).is_some())
}

/// The addresses of a stored service.
pub(crate) fn addresses_of(entry: &Arc<Entry>) -> Vec<IpAddr> {
    read(entry)
        .map(|service| services::addresses(service.value()))
        .unwrap_or_default()
}

/// Notices services and IPAddresses that may not match.
pub(crate) struct AddressListener {
    queue: Arc<Queue<Job>>,
}

impl Listener for AddressListener {
    fn reset(&mut self, store: &Store) {
        for entry in store.resource(SERVICES).snapshot().range("", None) {
            self.queue.add(Job::Service(entry.key().into()));
        }
        for entry in store.resource(ADDRESSES).snapshot().range("", None) {
            self.queue.add(Job::Address(entry.key().into()));
        }
    }

    fn on_event(&mut self, resource: &Arc<Resource>, event: &Event) {
        if resource.name() != ADDRESSES {
            return;
        }
        if event.kind != EventKind::Deleted {
            self.queue.add(Job::Address(event.key().into()));
        } else if let Ok(Some(service)) = read(&event.entry).map(|object| parent(object.value())) {
            // A client may have deleted it although the service has the address.
            self.queue.add(Job::Service(service.into()));
        }
    }
}

/// Creates and deletes IPAddresses.
pub(crate) struct AddressRepairer {
    client: Client,
    queue: Arc<Queue<Job>>,
}

impl Controller for AddressRepairer {
    const NAME: &'static str = "addresses";
    const MANAGER: &'static str = "kube-apiserver";
    const PARALLEL: usize = 16;
    type Key = Job;
    type Listener = AddressListener;

    fn identity(_: &Table) -> Identity {
        let rules = ["create delete | networking.k8s.io | ipaddresses"];
        Identity::own("bareboat-addresses", &rules)
    }

    fn has_work(server: &Server, _: &Options) -> bool {
        serves_addresses(server)
    }

    fn new(
        context: &mut Context<'_>,
        queue: Arc<Queue<Job>>,
    ) -> (AddressRepairer, AddressListener) {
        let repairer = AddressRepairer {
            client: context.client.clone(),
            queue: queue.clone(),
        };
        (repairer, AddressListener { queue })
    }

    async fn reconcile(&self, job: Job) -> Verdict {
        let done = match &job {
            Job::Service(key) => self.check_service(key).await,
            Job::Address(name) => self.check_address(name).await,
        };
        match done {
            Ok(verdict) => verdict,
            // It was deleted or changed meanwhile, and an event follows.
            Err(status) if matches!(status.code, 404 | 409) => Verdict::Done,
            Err(status) => {
                tracing::warn!(?job, %status, "cannot repair an IPAddress");
                Verdict::Retry
            }
        }
    }
}

impl AddressRepairer {
    fn store(&self) -> &Store {
        self.client.server().store()
    }

    /// Whether a service has an address now.
    fn has(&self, key: &str, address: IpAddr) -> bool {
        let entry = self.store().resource(SERVICES).get(key);
        entry.is_some_and(|entry| addresses_of(&entry).contains(&address))
    }

    /// Creates the IPAddresses that a service lacks.
    async fn check_service(&self, key: &Arc<str>) -> Result<Verdict, Status> {
        let Some(entry) = self.store().resource(SERVICES).get(key) else {
            return Ok(Verdict::Done);
        };
        for address in addresses_of(&entry) {
            let name = address.to_string();
            if let Some(stored) = self.store().resource(ADDRESSES).get(&name) {
                let object = read(&stored)?;
                if parent(object.value()).as_deref() == Some(&**key) {
                    continue;
                }
                // It names another parent, but this service has the address.
                tracing::warn!(
                    address = name,
                    service = &**key,
                    "an IPAddress names another parent than the service that has the address"
                );
                match self.remove(&name, &object).await {
                    // Another client changed it at the same time. Its deletion makes an event for its parent, which is not
                    // this service, so this service must be tried again.
                    Err(status) if status.code == 409 => return Ok(Verdict::Retry),
                    done => done?,
                }
            }
            self.create(key, address).await?;
            if !self.has(key, address) {
                // The service lost the address meanwhile.
                self.queue.add(Job::Address(name.into()));
            }
        }
        Ok(Verdict::Done)
    }

    async fn create(&self, key: &str, address: IpAddr) -> Result<(), Status> {
        let (namespace, service) = key.split_once('/').unwrap_or(("", key));
        let object = ip_address_of(namespace, service, address);
        self.client.ensure(PATH, &object).await
    }

    /// Deletes an IPAddress whose address no service has.
    async fn check_address(&self, name: &str) -> Result<Verdict, Status> {
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

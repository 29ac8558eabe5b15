//! Resolves hosts of the form `NAME.NAMESPACE.svc`, and certificates in secrets, for each new connection.
//!
//! The server's [`ServiceResolver`] knows the structure of services and secrets.

use crate::lookup::StoreLookup;
use crate::tls::ClientIdentity;
use bareboat_api::resolver::{Endpoint, ServiceResolver};
use bareboat_storage::Store;
use std::sync::Arc;

/// Finds services and certificates in a store.
#[derive(Clone)]
pub(super) struct Services {
    /// Absent in clients that only call URLs.
    objects: Option<(Store, Arc<dyn ServiceResolver>)>,
}

impl Services {
    pub(super) fn new(store: &Store, resolver: Arc<dyn ServiceResolver>) -> Services {
        Services {
            objects: Some((store.clone(), resolver)),
        }
    }

    /// No services at all.
    pub(super) fn none() -> Services {
        Services { objects: None }
    }

    /// Returns the endpoints of a port of `NAME.NAMESPACE.svc`, in the order to try them.
    pub(super) fn find(&self, host: &str, port: u16) -> Result<Vec<Endpoint>, String> {
        let mut parts = host.split('.');
        let (Some(name), Some(namespace), Some("svc"), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(format!("{host} is not the name of a service"));
        };
        match &self.objects {
            Some((store, resolver)) => {
                resolver.endpoints(namespace, name, port, &StoreLookup(store))
            }
            None => Err(format!("service \"{name}\" not found")),
        }
    }

    /// Returns the certificate in a secret, `NAMESPACE/NAME`. The secret is read for each connection.
    pub(super) fn certificate(&self, secret: &str) -> ClientIdentity {
        let (services, key) = (self.clone(), secret.to_owned());
        ClientIdentity::looked_up(move || {
            let (namespace, name) = key.split_once('/')?;
            let (store, resolver) = services.objects.as_ref()?;
            let pair = resolver.certificate(namespace, name, &StoreLookup(store))?;
            Some((pair.certificates, pair.key))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bareboat_api::resolver::NoServices;
    use bareboat_storage::{MemoryBackend, StoreOptions};

    #[test]
    fn other_hosts_are_not_services() {
        let backend = Arc::new(MemoryBackend::new());
        let store = Store::open(backend, StoreOptions::default()).expect("a store");
        let services = Services::new(&store, Arc::new(NoServices));
        for host in ["hook.ns", "a.hook.ns.svc", "svc", ""] {
            let why = format!("{host} is not the name of a service");
            assert_eq!(services.find(host, 443), Err(why));
        }
        let why = "service \"hook\" not found".to_owned();
        assert_eq!(services.find("hook.ns.svc", 443), Err(why));
    }
}

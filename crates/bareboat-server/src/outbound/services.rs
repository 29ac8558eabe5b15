//! Resolves hosts of the form `NAME.NAMESPACE.svc`, and certificates in secrets, for each new connection.
//!
//! The server's [`ServiceResolver`] knows the structure of services and secrets. Connections to a service are kept while
//! its endpoints stay the same: `whereabouts` tells.

use crate::lookup::StoreLookup;
use crate::tls::ClientIdentity;
use bareboat_api::resolver::{Endpoint, ServiceResolver};
use bareboat_storage::Store;
use http::Uri;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

/// Finds services and certificates in a store.
#[derive(Clone)]
pub(super) struct Services {
    /// Absent in clients that only call URLs.
    objects: Option<(Store, Arc<dyn ServiceResolver>)>,
    /// The whereabouts of services by host and port, with the revision of the store that they are of.
    known: Arc<Mutex<HashMap<String, (u64, Whereabouts)>>>,
}

/// A digest of a service's endpoints; `None` if it has none.
pub(super) type Whereabouts = Option<u64>;

/// Maximum number of services whose whereabouts are remembered.
const REMEMBERED: usize = 4096;

impl Services {
    pub(super) fn new(store: &Store, resolver: Arc<dyn ServiceResolver>) -> Services {
        Services {
            objects: Some((store.clone(), resolver)),
            known: Arc::default(),
        }
    }

    /// No services at all.
    pub(super) fn none() -> Services {
        Services {
            objects: None,
            known: Arc::default(),
        }
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

    /// Returns a digest of the endpoints of a service. They are looked up only after objects changed that decide about
    /// them, because this is asked before every call.
    pub(super) fn whereabouts(&self, uri: &Uri) -> Whereabouts {
        let (store, resolver) = self.objects.as_ref()?;
        let (authority, port) = (uri.authority()?, uri.port_u16()?);
        // Read first, so that a change during the lookup is noticed by the next call.
        let changes = resolver.depends_on().iter();
        let changed = changes.map(|name| store.resource(name).changed_at()).max();
        let changed = changed.unwrap_or(0);
        if let Some((at, known)) = self.known.lock().get(authority.as_str())
            && *at == changed
        {
            return *known;
        }
        let found = self.find(authority.host(), port).ok().map(digest);
        let mut known = self.known.lock();
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(authority.as_str().to_owned(), (changed, found));
        found
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

/// Returns a digest of endpoints, in whatever order they come.
fn digest(endpoints: Vec<Endpoint>) -> u64 {
    let mut all: Vec<(String, u16)> = endpoints
        .into_iter()
        .map(|endpoint| (endpoint.host, endpoint.port))
        .collect();
    all.sort_unstable();
    let mut hasher = DefaultHasher::new();
    all.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bareboat_api::admission::Lookup;
    use bareboat_api::resolver::{CertificatePair, NoServices};
    use bareboat_storage::{MemoryBackend, StoreOptions, Write};
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A service with one endpoint for each object in the store, in another order each time.
    #[derive(Default)]
    struct Rotating(AtomicUsize);

    impl ServiceResolver for Rotating {
        fn endpoints(
            &self,
            _: &str,
            _: &str,
            port: u16,
            objects: &dyn Lookup,
        ) -> Result<Vec<Endpoint>, String> {
            let calls = self.0.fetch_add(1, Ordering::Relaxed);
            let names = objects.list("here", "");
            let mut found: Vec<Endpoint> = names
                .iter()
                .map(|object| Endpoint::new(object.name(), port))
                .collect();
            let count = found.len();
            found.rotate_left(calls % count.max(1));
            match found.is_empty() {
                true => Err("nowhere".to_owned()),
                false => Ok(found),
            }
        }

        fn depends_on(&self) -> &'static [&'static str] {
            &["here"]
        }

        fn certificate(&self, _: &str, _: &str, _: &dyn Lookup) -> Option<CertificatePair> {
            None
        }
    }

    #[tokio::test]
    async fn whereabouts_change_with_the_endpoints_and_are_looked_up_after_changes_only() {
        let backend = Arc::new(MemoryBackend::new());
        let store = Store::open(backend, StoreOptions::default()).expect("a store");
        let resolver = Arc::new(Rotating::default());
        let services = Services::new(&store, resolver.clone());
        let uri = Uri::from_static("https://hook.ns.svc:443/path");
        let add = async |resource: &str, name: &str| {
            let object = bareboat_api::value!({
                "apiVersion": "v1", "kind": "A", "metadata": {"name": (name)},
            });
            let bytes = bareboat_wire::encode::persisted(&object);
            let write = Write::create(&store.resource(resource), name, bytes);
            store.commit(write).await.expect("it is written");
        };
        assert_eq!(services.whereabouts(&uri), None);
        add("here", "a").await;
        add("here", "b").await;
        let first = services.whereabouts(&uri);
        assert!(first.is_some());
        // Neither other objects nor the order of endpoints matter.
        add("elsewhere", "c").await;
        assert_eq!(services.whereabouts(&uri), first);
        assert_eq!(resolver.0.load(Ordering::Relaxed), 2);
        services.known.lock().clear();
        assert_eq!(services.whereabouts(&uri), first);
        add("here", "c").await;
        let moved = services.whereabouts(&uri);
        assert!(moved.is_some() && moved != first);
        assert_eq!(resolver.0.load(Ordering::Relaxed), 4);
    }

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

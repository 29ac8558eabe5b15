//! Addresses of services, given by several servers at the same time.

use super::{create_all, namespace};
use bareboat::api::{Value, value};
use bareboat::builtin::services::ServiceRanges;
use bareboat::controllers::Client;
use bareboat::storage::{MemoryBackend, Store, StoreOptions};
use bareboat::{ControlPlane as _, Server};
use bareboat_rig::plan;
use std::collections::BTreeSet;
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread")]
async fn no_address_is_given_twice_and_all_are_given() {
    let log = MemoryBackend::new().shared();
    // A range of 62 addresses, or of 1,022.
    let (network, size) = match plan::torture() {
        None => ("10.0.0.0/26", 62),
        Some(_) => ("10.0.0.0/22", 1022),
    };
    let servers = [0, 1, 2].map(|_| {
        let store = Store::open(Arc::new(log.clone()), StoreOptions::default()).unwrap();
        let ranges = ServiceRanges::parse(network, "30000-32767").unwrap();
        let settings = bareboat::prelude::Settings::default().services(ranges);
        let builder = Server::builder().storage(store);
        Client::new(builder.control_plane_with(&settings).build().unwrap())
    });
    namespace(&servers[0], "default").await;
    let service = |n: usize| {
        value!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": (format!("s{n}"))},
            "spec": {"ports": [{"port": 80}]},
        })
    };
    let path = "/api/v1/namespaces/default/services";
    let refused = create_all(&servers, path, (0..size + 20).map(service).collect()).await;
    assert_eq!(refused.len(), 20, "{refused:?}");
    let list = servers[1].get(path).await.unwrap();
    let items = list
        .get("items")
        .and_then(|items| items.as_array())
        .unwrap();
    let address = |item: &Value| {
        let address = item.at(&["spec", "clusterIP"]).and_then(|ip| ip.as_str());
        address.unwrap().to_owned()
    };
    let addresses: BTreeSet<String> = items.iter().map(address).collect();
    assert_eq!((items.len(), addresses.len()), (size, size));
}

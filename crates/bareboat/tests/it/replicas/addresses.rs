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

/// Returns three servers on one log that give addresses and node ports of these ranges.
async fn three(network: &str, ports: &str) -> [Client; 3] {
    let log = MemoryBackend::new().shared();
    let servers = [0, 1, 2].map(|_| {
        let store = Store::open(Arc::new(log.clone()), StoreOptions::default()).unwrap();
        let ranges = ServiceRanges::parse(network, ports).unwrap();
        let settings = bareboat::prelude::Settings::default().services(ranges);
        let builder = Server::builder().storage(store);
        Client::new(builder.control_plane_with(&settings).build().unwrap())
    });
    namespace(&servers[0], "default").await;
    servers
}

const SERVICES: &str = "/api/v1/namespaces/default/services";

#[tokio::test(flavor = "multi_thread")]
async fn no_address_is_given_twice_and_all_are_given() {
    // A range of 62 addresses, or of 1,022.
    let (network, size) = match plan::torture() {
        None => ("10.0.0.0/26", 62),
        Some(_) => ("10.0.0.0/22", 1022),
    };
    let servers = three(network, "30000-32767").await;
    let service = |n: usize| {
        value!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": (format!("s{n}"))},
            "spec": {"ports": [{"port": 80}]},
        })
    };
    let refused = create_all(&servers, SERVICES, (0..size + 20).map(service).collect()).await;
    assert_eq!(refused.len(), 20, "{refused:?}");
    let list = servers[1].get(SERVICES).await.unwrap();
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

#[tokio::test(flavor = "multi_thread")]
async fn no_node_port_is_given_twice_and_all_are_given() {
    let size = plan::count(60, 1_000) as usize;
    let ports = format!("30000-{}", 30_000 + size - 1);
    let servers = three("10.0.0.0/16", &ports).await;
    let service = |n: usize| {
        value!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": (format!("s{n}"))},
            "spec": {"type": "NodePort", "ports": [{"port": 80}]},
        })
    };
    let wanted = (0..size + 20).map(service).collect();
    let refused = create_all(&servers, SERVICES, wanted).await;
    assert_eq!(refused.len(), 20, "{refused:?}");
    let list = servers[2].get(SERVICES).await.unwrap();
    let items = list.get("items").and_then(|items| items.as_array());
    let port = |item: &Value| {
        let ports = item.at(&["spec", "ports"]).and_then(Value::as_array);
        let port = ports.and_then(|ports| ports[0].get("nodePort"));
        port.and_then(Value::as_i64).unwrap()
    };
    let given: BTreeSet<i64> = items.unwrap().iter().map(port).collect();
    let all: BTreeSet<i64> = (30_000..30_000 + size as i64).collect();
    assert_eq!(given, all);
}

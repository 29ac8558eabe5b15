//! The endpoints of the service `default/kubernetes` name all running servers of a shared store.

use crate::fixture::Fixture;
use bareboat::control_plane::{ControlPlane as _, Settings};
use bareboat::rbac::Rbac;
use bareboat_api::{Object, Value};
use bareboat_controllers::{KubernetesService, Options};
use bareboat_server::Server;
use bareboat_storage::{MemoryBackend, Store, StoreOptions};
use std::net::Ipv4Addr;
use std::sync::Arc;

const ENDPOINTS: &str = "/api/v1/namespaces/default/endpoints/kubernetes";
const SLICE: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";

/// Starts a server that other machines reach at 192.0.2.`number`.
async fn server(log: &MemoryBackend, number: u8) -> Fixture {
    let store = Store::open(Arc::new(log.clone()), StoreOptions::default()).unwrap();
    let server = Rbac::new().install(Server::builder().control_plane().storage(store));
    let options = Options {
        hostname: Some(format!("host-{number}")),
        kubernetes: Some(KubernetesService {
            endpoint: Some(Ipv4Addr::new(192, 0, 2, number).into()),
            ..Settings::default().kubernetes(6443)
        }),
        ..Options::default()
    };
    Fixture::over(server.build().unwrap(), options).await
}

fn items<'a>(object: Option<&'a Value>, member: &str) -> &'a [Value] {
    let list = object.and_then(|object| object.get(member)?.as_array());
    list.unwrap_or_default()
}

/// Returns whether the Endpoints name exactly these servers.
fn name(endpoints: &Object, numbers: &[u8]) -> bool {
    let subset = items(Some(endpoints.value()), "subsets").first();
    let found = items(subset, "addresses")
        .iter()
        .filter_map(|address| address.get("ip")?.as_str());
    let expected = numbers.iter().map(|number| format!("192.0.2.{number}"));
    found.eq(expected)
}

fn slice_names(slice: &Object, numbers: &[u8]) -> bool {
    let found = items(Some(slice.value()), "endpoints")
        .iter()
        .filter_map(|endpoint| items(Some(endpoint), "addresses").first()?.as_str());
    let expected = numbers.iter().map(|number| format!("192.0.2.{number}"));
    found.eq(expected)
}

#[tokio::test(flavor = "multi_thread")]
async fn all_running_servers_are_endpoints() {
    let log = MemoryBackend::new().shared();
    let first = server(&log, 1).await;
    first.until_it(ENDPOINTS, |it| name(it, &[1])).await;
    let second = server(&log, 2).await;
    let third = server(&log, 3).await;
    second.until_it(ENDPOINTS, |it| name(it, &[1, 2, 3])).await;
    second
        .until_it(SLICE, |it| slice_names(it, &[1, 2, 3]))
        .await;
    // A server that stops is left out at once.
    first.stop().await;
    second.until_it(ENDPOINTS, |it| name(it, &[2, 3])).await;
    // One that ends without a word is left out when its Lease is no longer valid.
    drop(second);
    third.until_it(ENDPOINTS, |it| name(it, &[3])).await;
    third.until_it(SLICE, |it| slice_names(it, &[3])).await;
}

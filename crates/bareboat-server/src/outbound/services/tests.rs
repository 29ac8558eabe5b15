//! Where services are found.
#![allow(clippy::unwrap_used)]

use super::*;
use bareboat_api::value;
use bareboat_storage::{MemoryBackend, StoreOptions, Write};

async fn put(store: &Store, resource: &str, key: &str, object: Value) {
    let write = Write::create(
        &store.resource(resource),
        key,
        bareboat_wire::encode::stored(&object),
    );
    store.commit(write).await.unwrap();
}

fn service(spec: Value) -> Value {
    let mut service = value!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook", "namespace": "ns"}});
    service.make_object().insert("spec", spec);
    service
}

async fn services(spec: Value) -> (Store, Services) {
    let backend = Arc::new(MemoryBackend::new());
    let store = Store::open(backend, StoreOptions::default()).unwrap();
    put(&store, SERVICES, "ns/hook", service(spec)).await;
    let services = Services::new(&store);
    (store, services)
}

fn found(services: &Services, host: &str, port: u16) -> Result<Vec<String>, String> {
    let places = services.find(host, port)?;
    let mut shown: Vec<String> = places
        .iter()
        .map(|place| format!("{}:{}", place.host, place.port))
        .collect();
    shown.sort();
    Ok(shown)
}

#[tokio::test]
async fn a_service_without_endpoints_is_at_its_own_address() {
    let spec = value!({"clusterIP": "10.0.0.1", "ports": [{"port": 443}]});
    let (_store, services) = services(spec).await;
    let at = |host: &str, port| found(&services, host, port);
    assert_eq!(at("hook.ns.svc", 443), Ok(vec!["10.0.0.1:443".to_owned()]));
    let cases = [
        ("other.ns.svc", 443, "service \"other\" not found"),
        ("hook.other.svc", 443, "service \"hook\" not found"),
        (
            "hook.ns.svc",
            8443,
            "no service port 8443 found for service \"hook\"",
        ),
        ("hook.ns", 443, "hook.ns is not the name of a service"),
        (
            "a.hook.ns.svc",
            443,
            "a.hook.ns.svc is not the name of a service",
        ),
    ];
    for (host, port, why) in cases {
        assert_eq!(at(host, port), Err(why.to_owned()), "{host}:{port}");
    }
}

#[tokio::test]
async fn an_external_name_is_its_own_host_on_any_port() {
    let spec = value!({"type": "ExternalName", "externalName": "hook.example.com"});
    let (_store, services) = services(spec).await;
    let places = found(&services, "hook.ns.svc", 9443);
    assert_eq!(places, Ok(vec!["hook.example.com:9443".to_owned()]));
}

#[tokio::test]
async fn ready_endpoints_of_slices_come_before_anything_else() {
    let spec = value!({"clusterIP": "10.0.0.1", "ports": [{"name": "a", "port": 443}, {"name": "b", "port": 80}]});
    let (store, services) = services(spec).await;
    let endpoints = value!({
        "apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "hook", "namespace": "ns"},
        "subsets": [{"addresses": [{"ip": "10.1.0.1"}], "notReadyAddresses": [{"ip": "10.1.0.2"}], "ports": [{"name": "a", "port": 1}]}],
    });
    put(&store, ENDPOINTS, "ns/hook", endpoints).await;
    let places = found(&services, "hook.ns.svc", 443);
    assert_eq!(places, Ok(vec!["10.1.0.1:1".to_owned()]));
    assert_eq!(
        found(&services, "hook.ns.svc", 80),
        Ok(vec!["10.0.0.1:80".to_owned()])
    );

    let slice = |name: &str, service: &str, address: &str| {
        value!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": name, "namespace": "ns", "labels": {"kubernetes.io/service-name": service}},
            "ports": [{"name": "a", "port": 8443}],
            "endpoints": [
                {"addresses": [address]},
                {"addresses": ["10.2.9.9"], "conditions": {"ready": false}},
            ],
        })
    };
    put(&store, SLICES, "ns/x", slice("x", "hook", "10.2.0.1")).await;
    put(&store, SLICES, "ns/y", slice("y", "hook", "10.2.0.2")).await;
    put(&store, SLICES, "ns/z", slice("z", "other", "10.2.0.3")).await;
    let places = found(&services, "hook.ns.svc", 443).unwrap();
    assert_eq!(places, ["10.2.0.1:8443", "10.2.0.2:8443"]);
    let first = |_| services.find("hook.ns.svc", 443).unwrap()[0].host.clone();
    let mut turns: Vec<String> = (0..4).map(first).collect();
    turns.sort();
    assert_eq!(turns, ["10.2.0.1", "10.2.0.1", "10.2.0.2", "10.2.0.2"]);
}

//! Tests of service resolution: order of endpoints, and errors.

use super::*;
use bareboat_api::admission::Brief;
use bareboat_api::{Object, value};
use std::collections::BTreeMap;

/// Objects by resource in storage, namespace and name.
#[derive(Default)]
struct Objects(BTreeMap<(String, String, String), Object>);

impl Objects {
    fn put(&mut self, store: &str, object: Value) {
        let object = Object::try_from(object).expect("an object");
        let key = (
            store.to_owned(),
            object.namespace().to_owned(),
            object.name().to_owned(),
        );
        self.0.insert(key, object);
    }
}

impl Lookup for Objects {
    fn brief(&self, _: &str, _: &str, _: &str) -> Option<Brief> {
        None
    }

    fn get(&self, store: &str, namespace: &str, name: &str) -> Option<Object> {
        let key = (store.to_owned(), namespace.to_owned(), name.to_owned());
        self.0.get(&key).cloned()
    }

    fn list(&self, store: &str, namespace: &str) -> Vec<Object> {
        let inside =
            |(own, within, _): &(String, String, String)| own == store && within == namespace;
        let found = self.0.iter().filter(|(key, _)| inside(key));
        found.map(|(_, object)| object.clone()).collect()
    }
}

fn service(spec: Value) -> Objects {
    let mut service = value!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook", "namespace": "ns"}});
    service.make_object().insert("spec", spec);
    let mut objects = Objects::default();
    objects.put(SERVICES, service);
    objects
}

fn found(objects: &Objects, namespace: &str, name: &str, port: u16) -> Result<Vec<String>, String> {
    let endpoints = ServiceEndpoints::default().endpoints(namespace, name, port, objects)?;
    let shown = endpoints.iter();
    let mut shown: Vec<String> = shown.map(|at| format!("{}:{}", at.host, at.port)).collect();
    shown.sort();
    Ok(shown)
}

#[test]
fn a_service_without_endpoints_resolves_to_its_cluster_ip() {
    let objects = service(value!({"clusterIP": "10.0.0.1", "ports": [{"port": 443}]}));
    let own = found(&objects, "ns", "hook", 443);
    assert_eq!(own, Ok(vec!["10.0.0.1:443".to_owned()]));
    let cases = [
        ("ns", "other", 443, "service \"other\" not found"),
        ("other", "hook", 443, "service \"hook\" not found"),
        (
            "ns",
            "hook",
            8443,
            "no service port 8443 found for service \"hook\"",
        ),
    ];
    for (namespace, name, port, why) in cases {
        let refused = found(&objects, namespace, name, port);
        assert_eq!(refused, Err(why.to_owned()), "{namespace}/{name}:{port}");
    }
}

#[test]
fn a_headless_service_without_endpoints_does_not_resolve() {
    let objects = service(value!({"clusterIP": "None", "ports": [{"port": 443}]}));
    let why = "no endpoints available for service \"hook\"".to_owned();
    assert_eq!(found(&objects, "ns", "hook", 443), Err(why));
}

#[test]
fn an_external_name_resolves_to_its_host_on_any_port() {
    let objects = service(value!({"type": "ExternalName", "externalName": "hook.example.com"}));
    let own = found(&objects, "ns", "hook", 9443);
    assert_eq!(own, Ok(vec!["hook.example.com:9443".to_owned()]));
}

#[test]
fn ready_endpoints_of_slices_come_first() {
    let mut objects = service(
        value!({"clusterIP": "10.0.0.1", "ports": [{"name": "a", "port": 443}, {"name": "b", "port": 80}]}),
    );
    let endpoints = value!({
        "apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "hook", "namespace": "ns"},
        "subsets": [{"addresses": [{"ip": "10.1.0.1"}], "notReadyAddresses": [{"ip": "10.1.0.2"}], "ports": [{"name": "a", "port": 1}]}],
    });
    objects.put(ENDPOINTS, endpoints);
    let own = found(&objects, "ns", "hook", 443);
    assert_eq!(own, Ok(vec!["10.1.0.1:1".to_owned()]));
    let other = found(&objects, "ns", "hook", 80);
    assert_eq!(other, Ok(vec!["10.0.0.1:80".to_owned()]));

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
    objects.put(SLICES, slice("x", "hook", "10.2.0.1"));
    objects.put(SLICES, slice("y", "hook", "10.2.0.2"));
    objects.put(SLICES, slice("z", "other", "10.2.0.3"));
    let own = found(&objects, "ns", "hook", 443).expect("endpoints");
    assert_eq!(own, ["10.2.0.1:8443", "10.2.0.2:8443"]);
    let resolver = ServiceEndpoints::default();
    let first = |_| {
        let endpoints = resolver.endpoints("ns", "hook", 443, &objects);
        endpoints.expect("endpoints")[0].host.clone()
    };
    let mut turns: Vec<String> = (0..4).map(first).collect();
    turns.sort();
    assert_eq!(turns, ["10.2.0.1", "10.2.0.1", "10.2.0.2", "10.2.0.2"]);
}

#[test]
fn the_certificate_of_a_secret_needs_both_keys() {
    let mut objects = Objects::default();
    let secret = |name: &str, data: Value| value!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "ns"}, "data": data});
    objects.put(SECRETS, secret("half", value!({"tls.crt": "Yw=="})));
    objects.put(
        SECRETS,
        secret("whole", value!({"tls.crt": "Yw==", "tls.key": "aw=="})),
    );
    let resolver = ServiceEndpoints::default();
    assert!(resolver.certificate("ns", "half", &objects).is_none());
    assert!(resolver.certificate("ns", "none", &objects).is_none());
    let pair = resolver
        .certificate("ns", "whole", &objects)
        .expect("a pair");
    assert_eq!((pair.certificates.as_str(), pair.key.as_str()), ("c", "k"));
}

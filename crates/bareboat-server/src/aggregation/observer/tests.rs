//! The table of routes follows the stored APIServices.

use super::*;
use bareboat_api::value;

fn service(group: &str, remote: bool, available: &str) -> ApiService {
    let mut object = value!({
        "metadata": {"name": (format!("v1.{group}"))},
        "spec": {"group": group, "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 15},
        "status": {"conditions": [{"type": "Available", "status": available}]},
    });
    if remote {
        let service = value!({"namespace": "ns", "name": "svc", "port": 443});
        let spec = object.make_object().object_mut("spec");
        spec.insert("service", service);
    }
    ApiService::parse(&object)
}

#[test]
fn a_route_exists_while_its_api_service_has_a_service() {
    let aggregation = Aggregation::default();
    assert!(aggregation.table.load().is_none());
    aggregation.put("v1.a.io", Some(service("a.io", false, "True")));
    assert!(aggregation.table.load().is_none(), "it is local");
    aggregation.put("v1.a.io", Some(service("a.io", true, "False")));
    let route = aggregation.named("v1.a.io").expect("it is remote");
    assert!(!route.available);
    let generation = aggregation.generation();
    aggregation.put("v1.a.io", Some(service("a.io", true, "False")));
    assert_eq!(aggregation.generation(), generation, "nothing changed");
    aggregation.put("v1.a.io", Some(service("a.io", true, "True")));
    let again = aggregation.named("v1.a.io").expect("it is remote");
    assert!(again.available);
    assert!(Arc::ptr_eq(&route.backend, &again.backend));
    aggregation.put("v1.b.io", Some(service("b.io", true, "True")));
    let other = aggregation.named("v1.b.io").expect("it is remote");
    assert!(Arc::ptr_eq(&other.backend, &again.backend), "one server");
    aggregation.put("v1.a.io", None);
    aggregation.put("v1.b.io", None);
    assert!(aggregation.table.load().is_none());
    assert!(aggregation.known.lock().backends.is_empty());
}

#[test]
fn no_other_server_takes_the_group_of_api_services_and_the_own_service_is_local() {
    let aggregation = Aggregation::default();
    let own = "apiregistration.k8s.io";
    aggregation.put(
        "v1.apiregistration.k8s.io",
        Some(service(own, true, "True")),
    );
    let object = value!({
        "spec": {"group": "c.io", "version": "v1",
            "service": {"namespace": "default", "name": "kubernetes", "port": 443}},
    });
    aggregation.put("v1.c.io", Some(ApiService::parse(&object)));
    assert!(aggregation.table.load().is_none());
}

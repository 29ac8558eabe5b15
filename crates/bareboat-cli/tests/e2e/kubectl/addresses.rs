//! Addresses of services and their networks in kubectl.

use super::Kubectl;

#[test]
fn addresses_of_services_are_listed_and_networks_added() {
    let Some(kubectl) = Kubectl::start_with(&["--service-cluster-ip-range", "10.9.0.0/30"]) else {
        return;
    };
    kubectl.until(
        "get ipaddresses",
        "NAME PARENTREF 10.9.0.1 services/default/kubernetes",
    );
    kubectl.until("get servicecidrs", "NAME CIDRS AGE kubernetes 10.9.0.0/30");
    kubectl.says("create service clusterip web --tcp=80", &["created"]);
    kubectl.says("get ip", &["10.9.0.2 services/default/web"]);
    kubectl.refuses("create service clusterip more --tcp=80", &["range is full"]);

    let added = "{apiVersion: networking.k8s.io/v1, kind: ServiceCIDR, metadata: {name: more}, spec: {cidrs: [10.8.0.0/28]}}";
    kubectl.says_for(
        "apply -f -",
        added,
        &["servicecidr.networking.k8s.io/more created"],
    );
    kubectl.says(
        "wait servicecidr/more --for=condition=Ready --timeout=240s",
        &["condition met"],
    );
    kubectl.says("create service clusterip more --tcp=80", &["created"]);
    let listed = kubectl.gives("get ipaddresses");
    assert!(listed.contains("services/default/more"), "{listed}");
    assert!(listed.contains("10.8.0."), "{listed}");

    kubectl.says("delete servicecidr more --wait=false", &["deleted"]);
    kubectl.until(
        "describe servicecidr more",
        "There are still IPAddresses referencing the ServiceCIDR",
    );
    // Allocated addresses and their owners survive a restart.
    let kubectl = kubectl.restarted();
    kubectl.until("get ipaddresses", "services/default/more");
    kubectl.says("delete service more", &["deleted"]);
    let listed = kubectl.gives("get ipaddresses");
    assert!(!listed.contains("services/default/more"), "{listed}");
    assert!(listed.contains("services/default/web"), "{listed}");
    kubectl.until_no_more("get servicecidrs", "more");
}

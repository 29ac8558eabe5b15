//! Addresses of services and the networks they come from, as kubectl shows them.

use super::Kubectl;
use std::time::{Duration, Instant};

/// Asks until the answer has some words, or has them no more.
fn until(kubectl: &Kubectl, line: &str, wanted: &str, there: bool) -> String {
    let begun = Instant::now();
    loop {
        let given = kubectl.gives(line);
        let words: Vec<&str> = given.split_whitespace().collect();
        let words = words.join(" ");
        if words.contains(wanted) == there {
            return words;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "kubectl {line}: {given}"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn addresses_of_services_are_listed_and_networks_added() {
    let Some(kubectl) = Kubectl::start_with(&["--service-cluster-ip-range", "10.9.0.0/30"]) else {
        return;
    };
    until(
        &kubectl,
        "get ipaddresses",
        "NAME PARENTREF 10.9.0.1 services/default/kubernetes",
        true,
    );
    kubectl.says(
        "get servicecidrs",
        &["NAME CIDRS AGE kubernetes 10.9.0.0/30"],
    );
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
        "wait servicecidr/more --for=condition=Ready --timeout=60s",
        &["condition met"],
    );
    kubectl.says("create service clusterip more --tcp=80", &["created"]);
    let listed = kubectl.gives("get ipaddresses");
    assert!(listed.contains("services/default/more"), "{listed}");
    assert!(listed.contains("10.8.0."), "{listed}");

    kubectl.says("delete servicecidr more --wait=false", &["deleted"]);
    until(
        &kubectl,
        "describe servicecidr more",
        "There are still IPAddresses referencing the ServiceCIDR",
        true,
    );
    // What was given out survives a restart, and so does who has it.
    let kubectl = kubectl.restarted();
    until(&kubectl, "get ipaddresses", "services/default/more", true);
    kubectl.says("delete service more", &["deleted"]);
    let listed = kubectl.gives("get ipaddresses");
    assert!(!listed.contains("services/default/more"), "{listed}");
    assert!(listed.contains("services/default/web"), "{listed}");
    until(&kubectl, "get servicecidrs", "more", false);
}

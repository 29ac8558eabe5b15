//! Actions on pods and services: binding, evicting, allocating addresses.

use super::Kubectl;

const NODE: &str = "apiVersion: v1\nkind: Node\nmetadata: {name: hull}\n";

/// Creates a pod whose status is running on the node.
fn run(kubectl: &Kubectl, name: &str) {
    kubectl.says(
        &format!("run {name} --image=i --labels=app=a"),
        &["created"],
    );
    let binding = format!(
        r#"{{"apiVersion":"v1","kind":"Binding","metadata":{{"name":"{name}"}},"target":{{"kind":"Node","name":"hull"}}}}"#
    );
    let path = format!("/api/v1/namespaces/default/pods/{name}/binding");
    kubectl.says_for(&format!("create --raw {path} -f -"), &binding, &["Success"]);
    kubectl.says(
        &format!(
            r#"patch pod {name} --subresource=status --type=merge -p '{{"status":{{"phase":"Running","conditions":[{{"type":"Ready","status":"True"}}]}}}}'"#
        ),
        &["patched"],
    );
}

#[test]
fn a_node_is_drained_as_far_as_budgets_allow() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    kubectl.says_for("create -f -", NODE, &["node/hull created"]);
    run(&kubectl, "one");
    run(&kubectl, "two");
    kubectl.says("get pods -o wide", &["one", "hull", "Running"]);
    kubectl.says(
        "create pdb keep --selector=app=a --min-available=1",
        &["created"],
    );
    let allow = |disruptions: i64| {
        let patch = format!(
            r#"patch pdb keep --subresource=status --type=merge -p '{{"status":{{"observedGeneration":1,"currentHealthy":2,"desiredHealthy":1,"expectedPods":2,"disruptionsAllowed":{disruptions}}}}}'"#
        );
        kubectl.says(&patch, &["patched"]);
    };
    kubectl.says("get pdb", &["keep 1 N/A 0"]);
    allow(1);
    // The budget allows one eviction; the next waits until another pod is ready.
    kubectl.refuses(
        "drain hull --force --grace-period=0 --timeout=15s",
        &["Cannot evict pod as it would violate the pod's disruption budget."],
    );
    let left = kubectl.gives("get pods -o name");
    assert_eq!(left.lines().count(), 1, "{left}");
    allow(1);
    kubectl.says(
        "drain hull --force --grace-period=0 --timeout=240s",
        &["evicted", "node/hull drained"],
    );
    assert_eq!(kubectl.gives("get pods -o name"), "");
}

#[test]
fn services_get_their_own_addresses() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    kubectl.says(
        "get service kubernetes",
        &["kubernetes ClusterIP 10.0.0.1 <none> 443/TCP"],
    );
    kubectl.says("get servicecidr kubernetes", &["10.0.0.0/24"]);
    for line in [
        "create service clusterip inner --tcp=80",
        "create service nodeport outer --tcp=80",
        "create service loadbalancer wide --tcp=80",
        "create service externalname other --external-name=a.example.com",
        "create service clusterip bare --clusterip=None",
        "create deployment web --image=nginx --port=80",
        "expose deployment web --type=NodePort",
    ] {
        kubectl.gives(line);
    }
    let column = |path: &str| -> Vec<String> {
        let text = kubectl.gives(&format!(
            "get services -o 'jsonpath={{range .items[*]}}{path} {{end}}'"
        ));
        text.split_whitespace().map(str::to_owned).collect()
    };
    let mut addresses = column("{.spec.clusterIPs[*]}");
    addresses.retain(|address| address != "None");
    let mut ports = column("{.spec.ports[*].nodePort}");
    for (what, list, count) in [("addresses", &mut addresses, 5), ("ports", &mut ports, 3)] {
        assert_eq!(list.len(), count, "{what}: {list:?}");
        list.sort();
        list.dedup();
        assert_eq!(list.len(), count, "{what} are shared: {list:?}");
    }
    assert!(
        addresses
            .iter()
            .all(|address| address.starts_with("10.0.0."))
    );
    assert!(
        ports
            .iter()
            .all(|port| (30000..=32767).contains(&port.parse::<i64>().unwrap()))
    );
    kubectl.refuses(
        "create service clusterip again --tcp=80 --clusterip=10.0.0.1",
        &["failed to allocate IP 10.0.0.1: provided IP is already allocated"],
    );
    // Applying a manifest without an address again changes nothing.
    let manifest =
        "apiVersion: v1\nkind: Service\nmetadata: {name: applied}\nspec: {ports: [{port: 80}]}\n";
    kubectl.says_for("apply -f -", manifest, &["created"]);
    kubectl.says_for("apply -f -", manifest, &["unchanged"]);
    kubectl.says_for(
        "apply --server-side -f - --force-conflicts",
        manifest,
        &["serverside-applied"],
    );
    kubectl.says("scale deployment web --replicas=3", &["scaled"]);
    let managers = kubectl.gives("get deployment web -o 'jsonpath={.metadata.managedFields[?(@.subresource==\"scale\")].manager}' --show-managed-fields");
    assert_eq!(managers, "kubectl");
}

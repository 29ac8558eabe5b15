//! Quotas, limits and aggregated roles in kubectl; and a server with the bare profile.

use super::Kubectl;

#[test]
fn quotas_are_created_described_and_enforced() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    // It counts against the quota, and is created after the server has started.
    kubectl.until("get configmaps", "kube-root-ca.crt");
    kubectl.says(
        "create quota small --hard=count/configmaps=3,pods=1,requests.cpu=1",
        &["resourcequota/small created"],
    );
    kubectl.says("create configmap one", &["configmap/one created"]);
    kubectl.says("create configmap two", &["configmap/two created"]);
    kubectl.refuses(
        "create configmap three",
        &["exceeded quota: small, requested: count/configmaps=1, used: count/configmaps=3, limited: count/configmaps=3"],
    );
    kubectl.refuses(
        "run greedy --image=busybox",
        &["failed quota: small: must specify requests.cpu for: greedy"],
    );
    // The third is kube-root-ca.crt.
    kubectl.until("describe quota small", "count/configmaps 3 3");
    kubectl.until("describe namespace default", "Resource Quotas");
    kubectl.says(
        "get quota",
        &["NAME REQUEST LIMIT AGE small count/configmaps: 3/3"],
    );
    kubectl.says("delete configmap one", &["deleted"]);
    kubectl.until("describe quota small", "count/configmaps 2 3");
    kubectl.says("create configmap three", &["created"]);
}

#[test]
fn limit_ranges_set_defaults_of_pods() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    let range = r#"{"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"limits"},"spec":{"limits":[
        {"type":"Container","default":{"memory":"64Mi"},"max":{"memory":"128Mi"}}]}}"#;
    kubectl.says_for("create -f -", range, &["limitrange/limits created"]);
    kubectl.says("run modest --image=busybox", &["pod/modest created"]);
    kubectl.says("describe pod modest", &["LimitRanger plugin set: memory request for container modest; memory limit for container modest"]);
    kubectl.refuses(
        r#"run greedy --image=busybox --overrides='{"spec":{"containers":[{"name":"greedy","image":"busybox","resources":{"limits":{"memory":"1Gi"}}}]}}'"#,
        &["maximum memory usage per Container is 128Mi, but limit is 1Gi"],
    );
    kubectl.says(
        "describe limitrange limits",
        &["Container memory - 128Mi 64Mi 64Mi"],
    );
}

#[test]
fn cluster_roles_are_aggregated() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    kubectl.says(
        "create clusterrole sum --aggregation-rule=to=sum",
        &["created"],
    );
    kubectl.says(
        "create clusterrole part --verb=get --resource=pods",
        &["created"],
    );
    kubectl.says("label clusterrole part to=sum", &["labeled"]);
    kubectl.until("describe clusterrole sum", "pods [] [] [get]");
    kubectl.says("delete clusterrole part", &["deleted"]);
    kubectl.until_no_more("get clusterrole sum -o 'jsonpath={.rules}'", "pods");
}

#[test]
fn a_bare_server_serves_only_its_kinds() {
    let Some(kubectl) = Kubectl::start_with(&["--profile", "bare"]) else {
        return;
    };
    let listed = kubectl.gives("api-resources -o name");
    let names: Vec<&str> = listed.lines().collect();
    assert!(
        names.contains(&"customresourcedefinitions.apiextensions.k8s.io"),
        "{listed}"
    );
    assert!(names.contains(&"leases.coordination.k8s.io"), "{listed}");
    for absent in [
        "pods",
        "services",
        "nodes",
        "deployments.apps",
        "limitranges",
    ] {
        assert!(!names.contains(&absent), "{absent}");
    }
    kubectl.refuses("get pods", &["the server doesn't have a resource type"]);
    kubectl.says("create namespace quiet", &["created"]);
    kubectl.says("-n quiet create configmap c", &["created"]);
    kubectl.says("delete namespace quiet", &["deleted"]);
}

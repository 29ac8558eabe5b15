//! Discovery, documentation and health in kubectl.

use super::Kubectl;

#[test]
fn discovery_lists_the_served_kinds() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    kubectl.says("version", &["Server Version: v1.36"]);
    kubectl.says(
        "api-versions",
        &[
            "v1",
            "apps/v1",
            "rbac.authorization.k8s.io/v1",
            "apiextensions.k8s.io/v1",
        ],
    );
    kubectl.says(
        "api-resources",
        &[
            "NAME SHORTNAMES APIVERSION NAMESPACED KIND",
            "configmaps cm v1 true ConfigMap",
            "namespaces ns v1 false Namespace",
            "deployments deploy apps/v1 true Deployment",
        ],
    );
    kubectl.says(
        "api-resources -o wide --namespaced=false --api-group=apiextensions.k8s.io",
        &[
            "customresourcedefinitions crd,crds",
            "create,delete,deletecollection,get,list,patch,update,watch",
        ],
    );
    let names = kubectl.gives("api-resources -o name --verbs=list,watch");
    assert!(
        names
            .lines()
            .any(|name| name == "leases.coordination.k8s.io"),
        "{names}"
    );
    kubectl.says("cluster-info", &["Kubernetes control plane is running at"]);
    kubectl.says("get --raw /readyz?verbose", &["ok"]);
    kubectl.says("get --raw /livez", &["ok"]);
    kubectl.says("get --raw /version", &["gitVersion"]);
    kubectl.says("get --raw /openapi/v3", &["apis/apps/v1"]);
    kubectl.says("get --raw /metrics", &["# TYPE"]);
}

#[test]
fn every_kind_can_be_explained_and_listed() {
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    kubectl.says(
        "explain cm",
        &["KIND: ConfigMap", "VERSION: v1", "data <map[string]string>"],
    );
    kubectl.says(
        "explain deployment.spec.template.spec.containers",
        &[
            "KIND: Deployment",
            "image <string>",
            "name <string> -required-",
        ],
    );
    kubectl.says(
        "explain pods --recursive",
        &["containers <[]Container> -required-"],
    );
    kubectl.refuses("explain cm.nothing", &["field \"nothing\" does not exist"]);
    let names = kubectl.gives("api-resources -o name --verbs=list");
    let all = names.lines().collect::<Vec<_>>().join(",");
    kubectl.says(&format!("get {all} -A"), &["namespace/default Active"]);
    kubectl.gives(&format!("get {all} -A -o wide"));
    kubectl.gives(&format!("get {all} -A -o yaml"));
}

//! Definitions that well-known projects publish: installed, explained, used.

use super::Kubectl;
use crate::tools;

#[test]
fn published_definitions_install_and_serve() {
    let Some(folder) = bareboat_vectors::folder("crds") else {
        return;
    };
    let Some(kubectl) = Kubectl::start() else {
        return;
    };
    for project in [
        "cert-manager",
        "gateway-api",
        "istio",
        "prometheus-operator",
    ] {
        let path = folder.join(project);
        kubectl.gives(&format!("apply --server-side -f '{}'", path.display()));
    }
    kubectl.says(
        "wait --for=condition=Established crd --all --timeout=240s",
        &["certificates.cert-manager.io condition met"],
    );
    let names = kubectl.gives("get crd -o name");
    assert!(names.lines().count() >= 40, "{names}");
    kubectl.says(
        "explain certificate.spec.issuerRef",
        &["name <string> -required-"],
    );
    kubectl.says(
        "explain prometheus.spec --recursive",
        &["remoteWrite", "replicas <integer>"],
    );
    kubectl.says(
        "api-resources --api-group=gateway.networking.k8s.io",
        &["httproutes"],
    );
    kubectl.says_for(
        "apply -f -",
        "apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: c}\n\
         spec: {secretName: s, dnsNames: [a.example.com], issuerRef: {name: i}}\n",
        &["certificate.cert-manager.io/c created"],
    );
    kubectl.says("get certificates", &["NAME READY SECRET AGE", "c s"]);
    kubectl.says_for(
        "apply --server-side -f -",
        "apiVersion: monitoring.coreos.com/v1\nkind: Prometheus\nmetadata: {name: p}\n\
         spec: {replicas: 2}\n",
        &["serverside-applied"],
    );
    kubectl.says("get prometheuses", &["NAME VERSION DESIRED READY", "p 2"]);
    kubectl.says("scale prometheus p --replicas=5", &["scaled"]);
    kubectl.refuses_for(
        "apply -f -",
        "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: g}\n\
         spec: {gatewayClassName: x, listeners: [{name: a, port: 99999, protocol: HTTP}]}\n",
        &["spec.listeners[0].port", "less than or equal to 65535"],
    );
    // After a restart all of it is served again.
    let Kubectl { server, home, .. } = kubectl;
    assert!(server.stop().0.success());
    let server = home.serve();
    let kubectl = Kubectl {
        program: tools::kubectl().expect("it was there before"),
        home,
        server,
    };
    assert_eq!(kubectl.gives("get crd -o name"), names);
    assert_eq!(
        kubectl.gives("get prometheus p -o 'jsonpath={.spec.replicas} {.spec.shards}'"),
        "2 5",
        "it is scaled by its shards"
    );
}

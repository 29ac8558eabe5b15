//! Tests of how kubelets are found.

use super::*;
use bareboat_api::admission::Brief;
use bareboat_api::value;

struct Nodes(Vec<Object>);

impl Lookup for Nodes {
    fn brief(&self, _: &str, _: &str, _: &str) -> Option<Brief> {
        None
    }

    fn get(&self, store: &str, _: &str, name: &str) -> Option<Object> {
        let mut all = self.0.iter();
        let found = all.find(|node| store == NODES && node.name() == name);
        found.cloned()
    }

    fn list(&self, _: &str, _: &str) -> Vec<Object> {
        Vec::new()
    }
}

fn object(value: Value) -> Object {
    Object::try_from(value).expect("an object")
}

fn node(annotations: Value, status: Value) -> Nodes {
    Nodes(vec![object(value!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "n", "annotations": (annotations)},
        "status": (status)
    }))])
}

fn kubelets() -> Kubelets {
    Kubelets::new(KubeletSettings::default())
}

#[test]
fn the_preferred_address_and_the_published_port_are_used() {
    let addresses = value!([
        {"type": "InternalIP", "address": "10.0.0.1"},
        {"type": "Hostname", "address": "n.example"}
    ]);
    let nodes = node(
        value!({}),
        value!({
            "addresses": (addresses.clone()),
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 4242}}
        }),
    );
    let url = |kubelets: Kubelets, nodes: &Nodes| kubelets.of_node(nodes, "n").map(|at| at.url);
    assert_eq!(
        url(kubelets(), &nodes),
        Ok("https://n.example:4242".to_owned())
    );
    let settings = KubeletSettings {
        preferred_address_types: vec!["InternalIP".to_owned()],
        ..KubeletSettings::default()
    };
    let nodes = node(value!({}), value!({"addresses": (addresses)}));
    let by_ip = Kubelets::new(settings);
    assert_eq!(url(by_ip, &nodes), Ok("https://10.0.0.1:10250".to_owned()));
    let six = node(
        value!({}),
        value!({"addresses": [{"type": "InternalIP", "address": "fd00::1"}]}),
    );
    assert_eq!(
        url(kubelets(), &six),
        Ok("https://[fd00::1]:10250".to_owned())
    );
}

#[test]
fn a_node_without_addresses_is_an_error() {
    let nodes = node(
        value!({}),
        value!({"addresses": [{"type": "Other", "address": "x"}]}),
    );
    let status = kubelets().of_node(&nodes, "n").expect_err("no address");
    assert_eq!(status.code, 500);
    assert_eq!(
        status.message,
        "no preferred addresses found; known addresses: [{Other x}]"
    );
    let status = kubelets().of_node(&nodes, "other").expect_err("no node");
    assert_eq!(status.message, "nodes \"other\" not found");
}

#[test]
fn urls_of_one_server_share_its_limit() {
    let kubelets = kubelets();
    let places = kubelets.places("https://n.example:443");
    for same in ["https://N.example/base", "https://n.example/other/base"] {
        assert!(Arc::ptr_eq(&places, &kubelets.places(same)), "{same}");
    }
    for other in [
        "http://n.example",
        "https://n.example:10250",
        "https://m.example",
    ] {
        assert!(!Arc::ptr_eq(&places, &kubelets.places(other)), "{other}");
    }
}

#[test]
fn annotations_come_first() {
    let nodes = node(
        value!({"bareboat.dev/kubelet-url": "http://127.0.0.1:7/base/"}),
        value!({}),
    );
    let at = kubelets().of_node(&nodes, "n").expect("a URL");
    assert_eq!(
        (at.url.as_str(), at.port.as_str()),
        ("http://127.0.0.1:7/base", "7")
    );
    let pod = |annotations: Value, spec: Value| {
        object(value!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "p", "annotations": (annotations)}, "spec": (spec)
        }))
    };
    let own = pod(
        value!({"bareboat.dev/kubelet-url": "https://own:1"}),
        value!({"nodeName": "n"}),
    );
    let at = kubelets().of_pod(&nodes, &own).expect("a URL");
    assert_eq!(at.map(|at| at.url), Some("https://own:1".to_owned()));
    let on_node = pod(value!({}), value!({"nodeName": "n"}));
    let at = kubelets().of_pod(&nodes, &on_node).expect("a URL");
    assert_eq!(at.map(|at| at.port), Some("7".to_owned()));
    assert_eq!(
        kubelets().of_pod(&nodes, &pod(value!({}), value!({}))),
        Ok(None)
    );
    let bad = pod(value!({"bareboat.dev/kubelet-url": "ftp://x"}), value!({}));
    assert!(kubelets().of_pod(&nodes, &bad).is_err());
}

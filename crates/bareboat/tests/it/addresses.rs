//! What tells of the addresses of services: an IPAddress for each, and networks that come and go.

use crate::support::*;
use bareboat::builtin::services::ServiceRanges;
use bareboat::controllers::Controllers;
use bareboat::prelude::{ControlPlane as _, Settings};
use bareboat_testing::TestServer;
use std::time::Duration;

const SERVICES: &str = "/api/v1/namespaces/default/services";
const ADDRESSES: &str = "/apis/networking.k8s.io/v1/ipaddresses";
const NETWORKS: &str = "/apis/networking.k8s.io/v1/servicecidrs";

async fn service(server: &TestServer, name: &str) -> String {
    let body = json!({"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}});
    let made = server.post(SERVICES, &body).await.expect(201).json();
    text(&made["spec"]["clusterIP"]).to_owned()
}

/// Waits until an answer is as it should be.
async fn until(server: &TestServer, path: &str, is: impl Fn(&Answer) -> bool) -> Answer {
    for _ in 0..3000 {
        let answer = server.get(path).await;
        if is(&answer) {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let last = server.get(path).await;
    panic!("{path} stays {} {}", last.code, last.text());
}

async fn told(server: &TestServer, address: &str) -> Value {
    let path = format!("{ADDRESSES}/{address}");
    until(server, &path, |answer| answer.code == 200)
        .await
        .json()
}

async fn untold(server: &TestServer, address: &str) {
    let path = format!("{ADDRESSES}/{address}");
    until(server, &path, |answer| answer.code == 404).await;
}

fn ready(network: &Value) -> (&str, &str) {
    let condition = &network["status"]["conditions"][0];
    (
        condition["status"].as_str().unwrap_or(""),
        condition["reason"].as_str().unwrap_or(""),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_address_of_a_service_is_told_as_long_as_it_has_it() {
    let server = TestServer::start().await;
    told(&server, "10.0.0.1").await;
    let address = service(&server, "a").await;
    let object = told(&server, &address).await;
    assert_eq!(
        object["spec"]["parentRef"],
        json!({"resource": "services", "namespace": "default", "name": "a"})
    );
    assert_eq!(
        object["metadata"]["labels"],
        json!({"ipaddress.kubernetes.io/ip-family": "IPv4", "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"})
    );
    assert_eq!(
        object["metadata"]["managedFields"][0]["manager"],
        "kube-apiserver"
    );
    // Whoever deletes it does not take the address away.
    let uid = object["metadata"]["uid"].clone();
    let path = format!("{ADDRESSES}/{address}");
    server.delete(&path).await.expect(200);
    let again = until(&server, &path, |answer| answer.code == 200)
        .await
        .json();
    assert_ne!(again["metadata"]["uid"], uid);
    server.delete(&format!("{SERVICES}/a")).await.expect(200);
    untold(&server, &address).await;
    // A service that becomes a name has no address any more.
    let address = service(&server, "b").await;
    told(&server, &address).await;
    let patch = json!({"spec": {"type": "ExternalName", "externalName": "x.example.com"}});
    let media = "application/merge-patch+json";
    server
        .patch(&format!("{SERVICES}/b"), media, &patch)
        .await
        .expect(200);
    untold(&server, &address).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_crash_left_behind_is_repaired_at_the_start() {
    let server = TestServer::builder().without_controllers().start().await;
    let space = json!({"metadata": {"name": "default"}});
    server.post("/api/v1/namespaces", &space).await;
    let address = service(&server, "a").await;
    let orphan = |name: &str, labels: Value| {
        json!({"metadata": {"name": name, "labels": labels},
            "spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "gone"}}})
    };
    let managed = json!({"ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"});
    let objects = [
        orphan("10.0.0.200", managed.clone()),
        orphan("10.0.0.201", json!({})),
        // This one is told to be somebody else's.
        orphan(&address, managed),
    ];
    for object in objects {
        server.post(ADDRESSES, &object).await.expect(201);
    }
    let _controllers = Controllers::start(server.server().clone()).await;
    untold(&server, "10.0.0.200").await;
    let path = format!("{ADDRESSES}/{address}");
    until(&server, &path, |answer| {
        answer.code == 200 && answer.json()["spec"]["parentRef"]["name"] == "a"
    })
    .await;
    // What nobody here wrote is nobody's business here.
    server
        .get(&format!("{ADDRESSES}/10.0.0.201"))
        .await
        .expect(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_is_told_to_be_somebody_elses_is_not_given_out() {
    let server = TestServer::start().await;
    let object = json!({"metadata": {"name": "10.0.0.7"},
        "spec": {"parentRef": {"group": "example.com", "resource": "gateways", "name": "g"}}});
    server.post(ADDRESSES, &object).await.expect(201);
    let body = json!({"metadata": {"name": "a"}, "spec": {"clusterIP": "10.0.0.7", "ports": [{"port": 80}]}});
    let (code, _, message) = server.post(SERVICES, &body).await.status();
    assert_eq!(code, 422);
    assert!(
        message.contains("provided IP is already allocated"),
        "{message}"
    );
    let path = format!("{ADDRESSES}/10.0.0.7");
    server.delete(&path).await.expect(200);
    server.post(SERVICES, &body).await.expect(201);
    assert_eq!(
        told(&server, "10.0.0.7").await["spec"]["parentRef"]["name"],
        "a"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn networks_are_added_and_go_when_nobody_needs_them() {
    let server = TestServer::builder()
        .bare()
        .with(|builder| {
            let ranges = ServiceRanges::parse("10.9.0.0/30", "30000-30010").expect("ranges");
            builder.control_plane_with(&Settings::default().services(ranges))
        })
        .start()
        .await;
    let _controllers = Controllers::start(server.server().clone()).await;
    let space = json!({"metadata": {"name": "default"}});
    server.post("/api/v1/namespaces", &space).await;
    for name in ["a", "b"] {
        assert!(service(&server, name).await.starts_with("10.9.0."));
    }
    let full = json!({"metadata": {"name": "c"}, "spec": {"ports": [{"port": 80}]}});
    let (code, _, message) = server.post(SERVICES, &full).await.status();
    assert_eq!(code, 500);
    assert!(message.contains("range is full"), "{message}");

    let more = json!({"metadata": {"name": "more"}, "spec": {"cidrs": ["10.8.0.0/28"]}});
    server.post(NETWORKS, &more).await.expect(201);
    let path = format!("{NETWORKS}/more");
    let network = until(&server, &path, |answer| {
        ready(&answer.json()) == ("True", "")
    })
    .await
    .json();
    assert_eq!(
        network["metadata"]["finalizers"],
        json!(["networking.k8s.io/service-cidr-finalizer"])
    );
    let address = service(&server, "c").await;
    assert!(address.starts_with("10.8.0."), "{address}");
    told(&server, &address).await;

    server.delete(&path).await.expect(200);
    until(&server, &path, |answer| {
        ready(&answer.json()) == ("False", "Terminating")
    })
    .await;
    // Nobody else gets an address of a network that goes.
    let last = json!({"metadata": {"name": "d"}, "spec": {"ports": [{"port": 80}]}});
    assert_eq!(server.post(SERVICES, &last).await.status().0, 500);
    server.get(&path).await.expect(200);
    server.delete(&format!("{SERVICES}/c")).await.expect(200);
    until(&server, &path, |answer| answer.code == 404).await;
    untold(&server, &address).await;
}

//! IPAddress objects of services, and ServiceCIDRs that are added and removed.

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

/// Waits until a response meets a condition.
async fn until(server: &TestServer, path: &str, is: impl Fn(&Answer) -> bool) -> Answer {
    for _ in 0..30_000 {
        let answer = server.get(path).await;
        if is(&answer) {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let last = server.get(path).await;
    panic!("{path} stays {} {}", last.code, last.text());
}

async fn ip_address(server: &TestServer, address: &str) -> Value {
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

/// Returns a server without controllers, so that only requests write objects.
async fn alone() -> TestServer {
    let server = TestServer::builder().without_controllers().start().await;
    let space = json!({"metadata": {"name": "default"}});
    server.post("/api/v1/namespaces", &space).await;
    server
}

async fn is_told(server: &TestServer, address: &str) -> bool {
    server.get(&format!("{ADDRESSES}/{address}")).await.code == 200
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_exists_when_the_response_arrives() {
    let server = alone().await;
    let address = service(&server, "a").await;
    let path = format!("{ADDRESSES}/{address}");
    let object = server.get(&path).await.expect(200).json();
    assert_eq!(
        object["spec"]["parentRef"],
        json!({"resource": "services", "namespace": "default", "name": "a"})
    );
    assert_eq!(
        object["metadata"]["labels"],
        json!({"ipaddress.kubernetes.io/ip-family": "IPv4", "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"})
    );
    let manager = &object["metadata"]["managedFields"][0];
    assert_eq!(manager["manager"], "kube-apiserver");
    assert_eq!(manager["operation"], "Update");
    server.delete(&format!("{SERVICES}/a")).await.expect(200);
    assert!(!is_told(&server, &address).await);

    // A service of type ExternalName has no address.
    let address = service(&server, "b").await;
    let name = json!({"spec": {"type": "ExternalName", "externalName": "x.example.com"}});
    let path = format!("{SERVICES}/b");
    server.patch(&path, MERGE, &name).await.expect(200);
    assert!(!is_told(&server, &address).await);
    let back =
        json!({"spec": {"type": "ClusterIP", "externalName": null, "ports": [{"port": 80}]}});
    let back = server.patch(&path, MERGE, &back).await.expect(200).json();
    assert!(is_told(&server, text(&back["spec"]["clusterIP"])).await);

    // A service keeps its address until its finalizers are removed.
    let held = json!({"metadata": {"finalizers": ["example.com/held"]}});
    server.patch(&path, MERGE, &held).await.expect(200);
    server.delete(&path).await.expect(200);
    let address = text(&back["spec"]["clusterIP"]);
    assert!(is_told(&server, address).await);
    let free = json!({"metadata": {"finalizers": null}});
    server.patch(&path, MERGE, &free).await.expect(200);
    server.get(&path).await.expect(404);
    assert!(!is_told(&server, address).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rejected_or_dry_run_service_leaves_no_address() {
    let server = alone().await;
    service(&server, "a").await;
    let before = server.get(ADDRESSES).await.names();
    let wrong = json!({"metadata": {"name": "b"}, "spec": {"ports": [{"port": 0}]}});
    server.post(SERVICES, &wrong).await.expect(422);
    let again = json!({"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}});
    server.post(SERVICES, &again).await.expect(409);
    let path = format!("{SERVICES}?dryRun=All");
    let fine = json!({"metadata": {"name": "b"}, "spec": {"ports": [{"port": 80}]}});
    server.post(&path, &fine).await.expect(201);
    let path = format!("{SERVICES}/a?dryRun=All");
    server.delete(&path).await.expect(200);
    assert_eq!(server.get(ADDRESSES).await.names(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_is_deleted_only_if_it_still_names_the_service() {
    let server = alone().await;
    let address = service(&server, "a").await;
    let path = format!("{ADDRESSES}/{address}");
    let held = json!({"metadata": {"finalizers": ["example.com/held"]}});
    server.patch(&path, MERGE, &held).await.expect(200);
    server.delete(&format!("{SERVICES}/a")).await.expect(200);
    let going = server.get(&path).await.expect(200).json();
    assert!(going["metadata"]["deletionTimestamp"].is_string());
    // A new service with the same address keeps the existing IPAddress.
    let body =
        json!({"metadata": {"name": "a"}, "spec": {"clusterIP": address, "ports": [{"port": 80}]}});
    server.post(SERVICES, &body).await.expect(201);
    let free = json!({"metadata": {"finalizers": null}});
    server.patch(&path, MERGE, &free).await.expect(200);
    server.get(&path).await.expect(404);
    let others = json!({"metadata": {"name": address},
        "spec": {"parentRef": {"group": "example.com", "resource": "gateways", "name": "g"}}});
    server.post(ADDRESSES, &others).await.expect(201);
    server.delete(&format!("{SERVICES}/a")).await.expect(200);
    server.get(&path).await.expect(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_requests_for_one_address_give_it_to_one_service() {
    let server = std::sync::Arc::new(alone().await);
    for round in 0..20 {
        let address = format!("10.0.0.{}", 20 + round);
        let gateway = json!({"metadata": {"name": address},
            "spec": {"parentRef": {"group": "example.com", "resource": "gateways", "name": "g"}}});
        let named = |name: &str| {
            json!({"metadata": {"name": format!("{name}{round}")},
                "spec": {"clusterIP": address, "ports": [{"port": 80}]}})
        };
        let wishes = [
            (SERVICES, named("a")),
            (ADDRESSES, gateway),
            (SERVICES, named("b")),
        ];
        let asked = wishes.map(|(path, body)| {
            let server = server.clone();
            tokio::spawn(async move { server.post(path, &body).await.code })
        });
        let mut made = Vec::new();
        for one in asked {
            made.push(one.await.expect("a request"));
        }
        let winners = made.iter().filter(|code| **code == 201).count();
        assert_eq!(winners, 1, "{address}: {made:?}");
        assert!(is_told(&server, &address).await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_address_of_a_service_is_restored() {
    let server = TestServer::start().await;
    assert!(is_told(&server, "10.0.0.1").await);
    let address = service(&server, "a").await;
    let uid = ip_address(&server, &address).await["metadata"]["uid"].clone();
    let path = format!("{ADDRESSES}/{address}");
    server.delete(&path).await.expect(200);
    let again = ip_address(&server, &address).await;
    assert_ne!(again["metadata"]["uid"], uid);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_are_repaired_at_the_start() {
    let server = alone().await;
    let address = service(&server, "a").await;
    let path = format!("{ADDRESSES}/{address}");
    server.delete(&path).await.expect(200);
    let orphan = |name: &str, labels: Value| {
        json!({"metadata": {"name": name, "labels": labels},
            "spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "gone"}}})
    };
    let managed = json!({"ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"});
    let objects = [
        orphan("10.0.0.200", managed.clone()),
        orphan("10.0.0.201", json!({})),
        // This one names the wrong service.
        orphan(&address, managed),
    ];
    for object in objects {
        server.post(ADDRESSES, &object).await.expect(201);
    }
    let _controllers = Controllers::start(server.server().clone()).await;
    untold(&server, "10.0.0.200").await;
    until(&server, &path, |answer| {
        answer.code == 200 && answer.json()["spec"]["parentRef"]["name"] == "a"
    })
    .await;
    // An unmanaged IPAddress is left alone.
    server
        .get(&format!("{ADDRESSES}/10.0.0.201"))
        .await
        .expect(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_of_another_owner_is_not_allocated() {
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
        ip_address(&server, "10.0.0.7").await["spec"]["parentRef"]["name"],
        "a"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn networks_are_added_and_removed_when_unused() {
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
    ip_address(&server, &address).await;

    server.delete(&path).await.expect(200);
    until(&server, &path, |answer| {
        ready(&answer.json()) == ("False", "Terminating")
    })
    .await;
    // A network that is being deleted gives out no addresses.
    let last = json!({"metadata": {"name": "d"}, "spec": {"ports": [{"port": 80}]}});
    assert_eq!(server.post(SERVICES, &last).await.status().0, 500);
    server.get(&path).await.expect(200);
    server.delete(&format!("{SERVICES}/c")).await.expect(200);
    until(&server, &path, |answer| answer.code == 404).await;
    untold(&server, &address).await;
}

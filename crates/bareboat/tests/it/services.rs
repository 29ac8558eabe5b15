//! Services: addresses and node ports are never shared.

use crate::support::*;
use bareboat::builtin::services::ServiceRanges;
use bareboat::prelude::{ControlPlane as _, Settings};
use bareboat_testing::TestServer;
use futures_util::future::join_all;
use std::collections::HashMap;

const SERVICES: &str = "/api/v1/namespaces/default/services";

fn service(name: &str, ty: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"type": ty, "ports": [{"port": 80}]}})
}

async fn create(server: &TestServer, name: &str, spec: Value) -> Answer {
    let body = json!({"metadata": {"name": name}, "spec": spec});
    server.post(SERVICES, &body).await
}

/// Returns the owner of every stored address and port; fails if one has two owners.
async fn owners(server: &TestServer) -> HashMap<String, String> {
    let list = server.get("/api/v1/services").await.expect(200).json();
    let mut owners: HashMap<String, String> = HashMap::new();
    for service in list["items"].as_array().unwrap() {
        let who = format!(
            "{}/{}",
            text(&service["metadata"]["namespace"]),
            name(service)
        );
        let spec = &service["spec"];
        let mut has: Vec<String> = Vec::new();
        for address in spec["clusterIPs"].as_array().into_iter().flatten() {
            has.push(text(address).to_owned());
        }
        for port in spec["ports"].as_array().into_iter().flatten() {
            has.extend(port["nodePort"].as_i64().map(|port| port.to_string()));
        }
        has.extend(
            spec["healthCheckNodePort"]
                .as_i64()
                .map(|port| port.to_string()),
        );
        for thing in has.into_iter().filter(|thing| thing != "None") {
            let before = owners.insert(thing.clone(), who.clone());
            assert!(
                before.as_ref().is_none_or(|before| *before == who),
                "{thing} belongs to {before:?} and {who}"
            );
        }
    }
    owners
}

#[tokio::test]
async fn the_server_has_a_service() {
    let server = TestServer::start().await;
    let path = format!("{SERVICES}/kubernetes");
    let found = server.get(&path).await.expect(200).json();
    assert_eq!(found["spec"]["clusterIP"], "10.0.0.1");
    let networks = "/apis/networking.k8s.io/v1/servicecidrs/kubernetes";
    let networks = server.get(networks).await.expect(200).json();
    assert_eq!(networks["spec"]["cidrs"], json!(["10.0.0.0/24"]));
    assert_eq!(networks["status"]["conditions"][0]["status"], "True");
    // A deleted one is created again.
    let mut watch = server
        .watch(&format!(
            "{SERVICES}?watch=1&resourceVersion={}&fieldSelector=metadata.name%3Dkubernetes",
            version(&found)
        ))
        .await;
    server.delete(&path).await.expect(200);
    assert_eq!(watch.brief().await, "DELETED kubernetes");
    assert_eq!(watch.brief().await, "ADDED kubernetes");
}

#[tokio::test]
async fn addresses_are_allocated_kept_and_rejected_as_upstream_does() {
    let server = TestServer::builder().without_controllers().start().await;
    let made = server
        .post(SERVICES, &service("a", "ClusterIP"))
        .await
        .expect(201)
        .json();
    let address = text(&made["spec"]["clusterIP"]).to_owned();
    assert!(address.starts_with("10.0.0."), "{address}");
    assert_eq!(made["spec"]["clusterIPs"], json!([address]));
    assert_eq!(made["spec"]["ipFamilies"], json!(["IPv4"]));
    assert_eq!(made["spec"]["ipFamilyPolicy"], "SingleStack");
    // The server allocated the address, so no manager owns it.
    let fields = made["metadata"]["managedFields"].to_string();
    assert!(!fields.contains("f:clusterIP"), "{fields}");
    let again = server
        .put(&format!("{SERVICES}/a"), &service("a", "ClusterIP"))
        .await
        .expect(200);
    assert_eq!(again.json()["spec"], made["spec"]);
    assert_eq!(again.version(), version(&made));

    let ports = json!([{"port": 1}]);
    let cases = [
        (json!({"clusterIP": address, "ports": ports}), format!("spec.clusterIPs: Invalid value: [\"{address}\"]: failed to allocate IP {address}: provided IP is already allocated")),
        (json!({"clusterIP": "10.0.0.1", "ports": ports}), "spec.clusterIPs: Invalid value: [\"10.0.0.1\"]: failed to allocate IP 10.0.0.1: provided IP is already allocated".to_owned()),
        (json!({"clusterIP": "10.0.0.0", "ports": ports}), "spec.clusterIPs: Invalid value: [\"10.0.0.0\"]: failed to allocate IP 10.0.0.0: the provided network does not match the current range".to_owned()),
        (json!({"clusterIP": "fd00::1", "ports": ports}), "spec.clusterIPs[0]: Invalid value: [\"fd00::1\"]: IPv6 is not configured on this cluster".to_owned()),
        (json!({"ipFamilyPolicy": "RequireDualStack", "ports": ports}), "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": this cluster is not configured for dual-stack services".to_owned()),
        (json!({"ipFamilies": ["IPv6"], "ports": ports}), "spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster".to_owned()),
        (json!({"ipFamilies": ["IPv4", "IPv4"], "ports": ports}), "spec.ipFamilies[1]: Duplicate value: \"IPv4\"".to_owned()),
        (json!({"clusterIPs": ["10.0.0.9"], "ports": ports}), "spec.clusterIPs: Invalid value: [\"10.0.0.9\"]: must be empty when `clusterIP` is not specified".to_owned()),
        (json!({"clusterIP": "10.0.0.9", "clusterIPs": ["10.0.0.9", "10.0.0.10"], "ports": ports}), "spec.clusterIPs: Invalid value: [\"10.0.0.9\",\"10.0.0.10\"]: may specify no more than one IP for each IP family".to_owned()),
        (json!({"type": "NodePort", "ports": [{"port": 1, "nodePort": 100}]}), "spec.ports[0].nodePort: Invalid value: 100: provided port is not in the valid range. The range of valid ports is 30000-32767".to_owned()),
        (json!({"ports": [{"port": 1, "nodePort": 30000}]}), "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'".to_owned()),
        (json!({"healthCheckNodePort": 31000, "ports": ports}), "spec.healthCheckNodePort: Invalid value: 31000: may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'".to_owned()),
        (json!({"externalTrafficPolicy": "Local", "ports": ports}), "spec.externalTrafficPolicy: Invalid value: \"Local\": may only be set for externally-accessible services".to_owned()),
        (json!({"allocateLoadBalancerNodePorts": true, "ports": ports}), "spec.allocateLoadBalancerNodePorts: Forbidden: may only be used when `type` is 'LoadBalancer'".to_owned()),
        (json!({"loadBalancerSourceRanges": ["10.0.0.0/8"], "ports": ports}), "spec.LoadBalancerSourceRanges: Forbidden: may only be used when `type` is 'LoadBalancer'".to_owned()),
        (json!({"type": "ExternalName", "externalName": "a.b", "clusterIP": "10.0.0.7"}), "spec.clusterIPs: Forbidden: may not be set for ExternalName services".to_owned()),
    ];
    for (spec, expected) in cases {
        let (code, _, message) = create(&server, "x", spec.clone()).await.status();
        assert_eq!(code, 422, "{spec}: {message}");
        assert_eq!(message, format!("Service \"x\" is invalid: {expected}"));
    }
    let changes = [
        (
            json!({"clusterIP": "10.0.0.77"}),
            "spec.clusterIPs[0]: Invalid value: [\"10.0.0.77\"]: may not change once set",
        ),
        (
            json!({"clusterIP": "None"}),
            "spec.clusterIPs[0]: Invalid value: [\"None\"]: may not change once set",
        ),
    ];
    for (spec, expected) in changes {
        let patch = json!({"spec": spec});
        let (code, _, message) = server
            .patch(&format!("{SERVICES}/a"), MERGE, &patch)
            .await
            .status();
        assert_eq!(
            (code, message),
            (422, format!("Service \"a\" is invalid: {expected}"))
        );
    }
    for kept in [
        json!({"clusterIP": null}),
        json!({"clusterIP": null, "clusterIPs": null}),
    ] {
        let patch = json!({"spec": kept});
        let answer = server
            .patch(&format!("{SERVICES}/a"), MERGE, &patch)
            .await
            .expect(200);
        assert_eq!(answer.json()["spec"]["clusterIP"], address.as_str());
    }
    let dry = server
        .post(
            &format!("{SERVICES}?dryRun=All"),
            &service("dry", "NodePort"),
        )
        .await
        .expect(201)
        .json();
    assert!(dry["spec"]["ports"][0]["nodePort"].is_number());
    assert_eq!(server.get(SERVICES).await.names(), ["a", "kubernetes"]);
}

#[tokio::test]
async fn released_addresses_and_ports_are_free() {
    let server = TestServer::builder().without_controllers().start().await;
    let take = json!({"type": "NodePort", "clusterIP": "10.0.0.40", "ports": [{"port": 80, "nodePort": 30040}]});
    create(&server, "a", take.clone()).await.expect(201);
    create(&server, "b", take.clone()).await.expect(422);
    let named = json!({"spec": {"type": "ExternalName", "externalName": "x.y"}});
    let after = server
        .patch(&format!("{SERVICES}/a"), MERGE, &named)
        .await
        .expect(200)
        .json();
    assert_eq!(after["spec"].get("clusterIP"), None);
    create(&server, "b", take.clone()).await.expect(201);
    server.delete(&format!("{SERVICES}/b")).await.expect(200);
    create(&server, "c", take.clone()).await.expect(201);
    // A write that is rejected late releases its reservations.
    let bad = json!({"type": "NodePort", "clusterIP": "10.0.0.41", "ports": [{"port": 80, "nodePort": 30041, "protocol": "X"}]});
    create(&server, "d", bad).await.expect(422);
    let good = json!({"type": "NodePort", "clusterIP": "10.0.0.41", "ports": [{"port": 80, "nodePort": 30041}]});
    create(&server, "d", good).await.expect(201);
    owners(&server).await;
}

#[tokio::test]
async fn endpoints_are_deleted_with_their_service() {
    let server = TestServer::builder().without_controllers().start().await;
    let endpoints = "/api/v1/namespaces/default/endpoints";
    for held in [false, true] {
        create(&server, "a", json!({"ports": [{"port": 80}]}))
            .await
            .expect(201);
        server
            .post(endpoints, &json!({"metadata": {"name": "a"}}))
            .await
            .expect(201);
        server
            .post(
                endpoints,
                &json!({"metadata": {"name": format!("b{held}")}}),
            )
            .await
            .expect(201);
        let path = format!("{SERVICES}/a");
        if held {
            let finalizers = |list: Value| json!({"metadata": {"finalizers": list}});
            server
                .patch(&path, MERGE, &finalizers(json!(["x.y/z"])))
                .await
                .expect(200);
            server.delete(&path).await.expect(200);
            server.get(&format!("{endpoints}/a")).await.expect(200);
            server
                .patch(&path, MERGE, &finalizers(json!(null)))
                .await
                .expect(200);
        } else {
            server
                .delete(&format!("{path}?dryRun=All"))
                .await
                .expect(200);
            server.get(&format!("{endpoints}/a")).await.expect(200);
            server.delete(&path).await.expect(200);
        }
        server.get(&format!("{endpoints}/a")).await.expect(404);
        server
            .get(&format!("{endpoints}/b{held}"))
            .await
            .expect(200);
    }
}

#[tokio::test]
async fn two_families_are_allocated_if_there_are_two_networks() {
    let server = TestServer::builder()
        .bare()
        .with(|builder| {
            let ranges =
                ServiceRanges::parse("10.9.0.0/24,fd00:9::/112", "31000-31010").expect("ranges");
            builder.control_plane_with(&Settings::default().services(ranges))
        })
        .start()
        .await;
    server
        .post(
            "/api/v1/namespaces",
            &json!({"metadata": {"name": "default"}}),
        )
        .await
        .expect(201);
    let made = create(
        &server,
        "a",
        json!({"ipFamilyPolicy": "PreferDualStack", "type": "NodePort", "ports": [{"port": 80}]}),
    )
    .await
    .expect(201)
    .json();
    assert_eq!(made["spec"]["ipFamilies"], json!(["IPv4", "IPv6"]));
    let addresses = made["spec"]["clusterIPs"].as_array().unwrap();
    assert!(text(&addresses[0]).starts_with("10.9.0."));
    assert!(text(&addresses[1]).starts_with("fd00:9::"));
    let one = json!({"spec": {"ipFamilyPolicy": "SingleStack"}});
    let one = server
        .patch(&format!("{SERVICES}/a"), MERGE, &one)
        .await
        .expect(200)
        .json();
    assert_eq!(one["spec"]["clusterIPs"], json!([addresses[0]]));
    let other = create(
        &server,
        "b",
        json!({"clusterIP": addresses[1], "ports": [{"port": 80}]}),
    )
    .await
    .expect(201)
    .json();
    assert_eq!(other["spec"]["ipFamilies"], json!(["IPv6"]));
}

#[tokio::test]
async fn concurrent_writers_never_share_addresses_or_ports() {
    let mut server = TestServer::builder()
        .sqlite()
        .without_controllers()
        .start()
        .await;
    // Few addresses for many names, so that most writers collide.
    let types = ["ClusterIP", "NodePort", "LoadBalancer"];
    for round in 0..4 {
        let names: Vec<String> = (0..90).map(|number| format!("s{round}-{number}")).collect();
        let made = join_all(names.iter().enumerate().map(|(number, name)| {
            let server = &server;
            let body = service(name, types[number % 3]);
            async move { server.post(SERVICES, &body).await.expect(201) }
        }));
        made.await;
        // Six compete for one address and one port.
        let fights = join_all((0..6).map(|number| {
            let spec = json!({"type": "NodePort", "clusterIP": "10.0.0.5", "ports": [{"port": 1, "nodePort": 30005}]});
            let name = format!("f{round}-{number}");
            let server = &server;
            async move { create(server, &name, spec).await.code }
        }));
        let codes = fights.await;
        assert_eq!(
            codes.iter().filter(|code| **code == 201).count(),
            1,
            "{codes:?}"
        );
        let before = owners(&server).await;
        server.restart().await;
        assert_eq!(owners(&server).await, before);
        // Stored addresses are still taken after a restart.
        let spec = json!({"clusterIP": "10.0.0.5", "ports": [{"port": 1}]});
        create(&server, "late", spec).await.expect(422);
        let list = server.get(SERVICES).await.names();
        let gone = join_all(
            list.iter()
                .filter(|name| *name != "kubernetes")
                .map(|name| {
                    let path = format!("{SERVICES}/{name}");
                    let server = &server;
                    async move { server.delete(&path).await.expect(200) }
                }),
        );
        gone.await;
        assert_eq!(owners(&server).await.len(), 1);
    }
}

#[tokio::test]
async fn a_change_of_type_drops_and_keeps_fields_as_upstream_does() {
    let server = TestServer::builder().without_controllers().start().await;
    // ExternalName drops addresses, families and internalTrafficPolicy.
    let headless = json!({"clusterIP": "None", "ports": [{"port": 80}]});
    create(&server, "a", headless).await.expect(201);
    let named = json!({"metadata": {"name": "a"}, "spec": {"type": "ExternalName", "externalName": "x.y", "clusterIP": "None",
        "internalTrafficPolicy": "Cluster"}});
    let path = format!("{SERVICES}/a");
    let after = server.put(&path, &named).await.expect(200).json();
    for member in [
        "clusterIP",
        "clusterIPs",
        "ipFamilies",
        "internalTrafficPolicy",
    ] {
        assert_eq!(after["spec"].get(member), None, "{member}");
    }
    let name = |policy: &str| json!({"type": "ExternalName", "externalName": "x.y", "internalTrafficPolicy": policy});
    let made = create(&server, "name", name("Local"))
        .await
        .expect(201)
        .json();
    assert_eq!(made["spec"].get("internalTrafficPolicy"), None);
    create(&server, "odd", name("Sideways")).await.expect(422);
    // Node ports stay when allocation is switched off.
    create(
        &server,
        "b",
        json!({"type": "LoadBalancer", "ports": [{"port": 80}]}),
    )
    .await
    .expect(201);
    let path = format!("{SERVICES}/b");
    let before = server.get(&path).await.json()["spec"]["ports"][0]["nodePort"].clone();
    assert!(before.is_number());
    let fewer = json!({"spec": {"allocateLoadBalancerNodePorts": false}});
    let after = server.patch(&path, MERGE, &fewer).await.expect(200).json();
    assert_eq!(after["spec"]["ports"][0]["nodePort"], before);
    // A PUT without them keeps them.
    let put = json!({"metadata": {"name": "b"}, "spec": {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false,
        "ports": [{"port": 80}]}});
    let after = server.put(&path, &put).await.expect(200).json();
    assert_eq!(after["spec"]["ports"][0]["nodePort"], before);
    // A change to ClusterIP drops node ports although one port was removed.
    let ports = json!([{"name": "x", "port": 80}, {"name": "y", "port": 81}]);
    create(&server, "c", json!({"type": "NodePort", "ports": ports}))
        .await
        .expect(201);
    let path = format!("{SERVICES}/c");
    let mut inner = server.get(&path).await.json();
    inner["spec"]["type"] = json!("ClusterIP");
    inner["spec"]["ports"].as_array_mut().unwrap().truncate(1);
    let after = server.put(&path, &inner).await.expect(200).json();
    assert_eq!(after["spec"]["ports"][0].get("nodePort"), None);
}

//! Subresources of pods: ephemeralcontainers and resize.

use crate::support::*;
use bareboat_testing::TestServer;

const PODS: &str = "/api/v1/namespaces/default/pods";
const NODES: &str = "/api/v1/nodes";

async fn server() -> TestServer {
    TestServer::builder().without_controllers().start().await
}

fn pod(name: &str, spec: Value) -> Value {
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
        "containers": [{"name": "c", "image": "i", "resources": {
            "requests": {"cpu": "100m", "memory": "64Mi", "ephemeral-storage": "1Gi"},
        }}],
    }});
    for (member, value) in spec.as_object().unwrap() {
        pod["spec"][member] = value.clone();
    }
    pod
}

fn ephemeral(names: &[&str]) -> Value {
    let containers: Vec<Value> = names
        .iter()
        .map(|name| json!({"name": name, "image": "i"}))
        .collect();
    json!({"spec": {"ephemeralContainers": containers}})
}

#[tokio::test]
async fn ephemeral_containers_cannot_be_removed_or_changed() {
    let server = server().await;
    let mut labelled = pod("p", json!({}));
    labelled["metadata"]["labels"] = json!({"a": "b"});
    server.post(PODS, &labelled).await.expect(201);
    let path = format!("{PODS}/p/ephemeralcontainers");
    let added = server
        .patch(&path, STRATEGIC, &ephemeral(&["one", "two"]))
        .await;
    let added = added.expect(200).json();
    // A merge patch and a PUT replace the list.
    let mut less = added.clone();
    less["spec"]["ephemeralContainers"]
        .as_array_mut()
        .unwrap()
        .truncate(1);
    for answer in [
        server.patch(&path, MERGE, &ephemeral(&["two"])).await,
        server
            .patch(
                &path,
                MERGE,
                &json!({"spec": {"ephemeralContainers": null}}),
            )
            .await,
        server.put(&path, &less).await,
    ] {
        let (_, _, message) = answer.expect(422).status();
        assert!(
            message
                .contains("spec.ephemeralContainers: Forbidden: existing ephemeral containers \""),
            "{message}"
        );
        assert!(message.contains("may not be removed"), "{message}");
    }
    let mut other = added.clone();
    other["spec"]["ephemeralContainers"][0]["image"] = json!("other");
    let (_, _, message) = server.put(&path, &other).await.expect(422).status();
    assert!(
        message.contains("existing ephemeral containers \"one\" may not be changed"),
        "{message}"
    );
    // One can be added at any position. Nothing else of the pod changes.
    let mut more = added.clone();
    let list = more["spec"]["ephemeralContainers"].as_array_mut().unwrap();
    list.insert(0, json!({"name": "three", "image": "i"}));
    more["metadata"]["labels"] = json!({"x": "y"});
    let after = server.put(&path, &more).await.expect(200).json();
    assert_eq!(
        after["spec"]["ephemeralContainers"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    assert_eq!(after["metadata"]["labels"], json!({"a": "b"}));
}

/// Resizes the only container of a pod.
async fn resize(server: &TestServer, name: &str, resources: Value) -> Answer {
    let patch = json!({"spec": {"containers": [{"name": "c", "resources": resources}]}});
    server
        .patch(&format!("{PODS}/{name}/resize"), STRATEGIC, &patch)
        .await
}

#[tokio::test]
async fn a_resize_changes_cpu_and_memory_only() {
    let server = server().await;
    server.post(PODS, &pod("p", json!({}))).await.expect(201);
    let windows = pod("w", json!({"os": {"name": "windows"}}));
    server.post(PODS, &windows).await.expect(201);
    let after = resize(&server, "p", json!({"requests": {"cpu": "200m"}})).await;
    let after = after.expect(200).json();
    assert_eq!(
        after["spec"]["containers"][0]["resources"]["requests"]["cpu"],
        "200m"
    );
    assert_eq!(after["metadata"]["generation"], 2);
    let cases = [
        (
            "p",
            json!({"requests": {"ephemeral-storage": "2Gi"}}),
            "spec: Forbidden: only cpu and memory resources are mutable",
        ),
        (
            "p",
            json!({"requests": {"memory": null}}),
            "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed",
        ),
        (
            "w",
            json!({"requests": {"cpu": "200m"}}),
            ": Forbidden: windows pods cannot be resized",
        ),
    ];
    for (name, resources, expected) in cases {
        let (_, _, message) = resize(&server, name, resources.clone())
            .await
            .expect(422)
            .status();
        assert_eq!(
            message,
            format!("Pod \"{name}\" is invalid: {expected}"),
            "{resources}"
        );
    }
    let two =
        json!({"spec": {"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "i"}]}});
    let added = server.patch(&format!("{PODS}/p/resize"), MERGE, &two).await;
    let (_, _, message) = added.expect(422).status();
    assert!(
        message.contains(
            "spec.containers: Forbidden: containers may not be added or removed on resize"
        ),
        "{message}"
    );
}

#[tokio::test]
async fn a_resize_must_fit_a_linux_node() {
    let server = server().await;
    for (name, system) in [("linux", "linux"), ("windows", "windows")] {
        let node = json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/os": system}},
            "status": {"allocatable": {"cpu": "1", "memory": "1Gi"}}});
        server.post(NODES, &node).await.expect(201);
        let bound = pod(&format!("on-{name}"), json!({"nodeName": name}));
        server.post(PODS, &bound).await.expect(201);
    }
    server
        .post(PODS, &pod("on-nothing", json!({"nodeName": "gone"})))
        .await
        .expect(201);
    server
        .post(PODS, &pod("on-linux-too", json!({"nodeName": "linux"})))
        .await
        .expect(201);
    let much = json!({"requests": {"cpu": "1500m", "memory": "2Gi"}});
    let refused = resize(&server, "on-linux", much.clone()).await.expect(403);
    assert_eq!(
        refused.status().2,
        "pods \"on-linux\" is forbidden: node didn't have enough allocatable resources: cpu, requested: 1500, allocatable: 1000; memory, requested: 2147483648, allocatable: 1073741824"
    );
    assert_eq!(
        refused.json()["details"]["causes"],
        json!([{"reason": "NodeCapacity"}])
    );
    let little = json!({"requests": {"cpu": "1"}});
    let refused = resize(&server, "on-windows", little.clone())
        .await
        .expect(403);
    assert_eq!(
        refused.status().2,
        "pods \"on-windows\" is forbidden: pod resize is only supported on linux nodes, node \"windows\" is \"windows\""
    );
    let refused = resize(&server, "on-nothing", little.clone())
        .await
        .expect(403);
    assert_eq!(
        refused.status().2,
        "pods \"on-nothing\" is forbidden: node \"gone\" not found"
    );
    resize(&server, "on-linux", little).await.expect(200);
    // A write that changes nothing is not checked.
    resize(&server, "on-nothing", json!({"requests": {"cpu": "100m"}}))
        .await
        .expect(200);
}

//! StorageClasses, IngressClasses, PriorityClasses and RuntimeClasses on a whole server.

use crate::support::{MERGE, Requests as _, Value, json};
use bareboat_testing::TestServer;

const NAMESPACE: &str = "/api/v1/namespaces/default";

fn pod(name: &str, spec: Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    for (member, value) in spec.as_object().unwrap() {
        pod["spec"][member] = value.clone();
    }
    pod
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_and_ingresses_get_the_default_class_unless_they_name_one() {
    let server = TestServer::start().await;
    let classes = "/apis/storage.k8s.io/v1/storageclasses";
    let class = |name: &str, marked: &str| {
        json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "example.com/disks",
            "metadata": {"name": name, "annotations": {"storageclass.kubernetes.io/is-default-class": marked}},
        })
    };
    let claims = format!("{NAMESPACE}/persistentvolumeclaims");
    let claim = |name: &str, class: Option<&str>| {
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": class,
                "resources": {"requests": {"storage": "1Gi"}},
            },
        })
    };
    let class_of = async |claim: Value| {
        let created = server.post(&claims, &claim).await.expect(201).json();
        created["spec"].get("storageClassName").cloned()
    };
    assert_eq!(class_of(claim("early", None)).await, None);
    for (name, marked) in [("slow", "false"), ("usual", "true")] {
        server.post(classes, &class(name, marked)).await.expect(201);
    }
    assert_eq!(class_of(claim("none", None)).await, Some(json!("usual")));
    assert_eq!(
        class_of(claim("own", Some("slow"))).await,
        Some(json!("slow"))
    );
    assert_eq!(class_of(claim("empty", Some(""))).await, Some(json!("")));

    let class = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "spec": {"controller": "example.com/gates"},
        "metadata": {"name": "gates", "annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}},
    });
    let path = "/apis/networking.k8s.io/v1/ingressclasses";
    server.post(path, &class).await.expect(201);
    let ingresses = "/apis/networking.k8s.io/v1/namespaces/default/ingresses";
    for (name, annotations, expected) in [
        ("plain", json!({}), Some(json!("gates"))),
        ("old", json!({"kubernetes.io/ingress.class": "mine"}), None),
    ] {
        let ingress = json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}},
        });
        let created = server.post(ingresses, &ingress).await.expect(201).json();
        assert_eq!(
            created["spec"].get("ingressClassName").cloned(),
            expected,
            "{name}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bound_claims_grow_where_their_class_allows_it() {
    let server = TestServer::start().await;
    for (name, allows) in [("fixed", json!(null)), ("elastic", json!(true))] {
        let class = json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "example.com/disks",
            "metadata": {"name": name}, "allowVolumeExpansion": allows,
        });
        let path = "/apis/storage.k8s.io/v1/storageclasses";
        server.post(path, &class).await.expect(201);
    }
    let claims = format!("{NAMESPACE}/persistentvolumeclaims");
    for class in ["fixed", "elastic"] {
        let claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": class},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": class, "volumeName": "v",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        });
        server.post(&claims, &claim).await.expect(201);
        let path = format!("{claims}/{class}");
        let more = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
        // An unbound claim cannot be resized, whatever its class allows.
        server.patch(&path, MERGE, &more).await.expect(422);
        let bound = json!({"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}});
        server
            .patch(&format!("{path}/status"), MERGE, &bound)
            .await
            .expect(200);
        let answer = server.patch(&path, MERGE, &more).await;
        if class == "elastic" {
            answer.expect(200);
        } else {
            assert_eq!(
                answer.status(),
                (
                    403,
                    "Forbidden".to_owned(),
                    "persistentvolumeclaims \"fixed\" is forbidden: only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize".to_owned(),
                )
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_one_priority_class_can_be_the_global_default() {
    let server = TestServer::start().await;
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    let class = |name: &str, value: i64, everybodys: bool| {
        json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
            "value": value, "globalDefault": everybodys, "preemptionPolicy": "Never",
        })
    };
    let pods = format!("{NAMESPACE}/pods");
    let rank = async |name: &str, spec: Value| {
        let created = server
            .post(&pods, &pod(name, spec))
            .await
            .expect(201)
            .json();
        let spec = &created["spec"];
        json!([
            spec["priorityClassName"],
            spec["priority"],
            spec["preemptionPolicy"]
        ])
    };
    assert_eq!(
        rank("early", json!({})).await,
        json!([null, 0, "PreemptLowerPriority"])
    );
    server
        .post(classes, &class("crew", 7, true))
        .await
        .expect(201);
    server
        .post(classes, &class("guests", 3, false))
        .await
        .expect(201);
    assert_eq!(rank("none", json!({})).await, json!(["crew", 7, "Never"]));
    let named = json!({"priorityClassName": "guests"});
    assert_eq!(rank("named", named).await, json!(["guests", 3, "Never"]));

    let message = |name: &str| {
        format!(
            "priorityclasses.scheduling.k8s.io \"{name}\" is forbidden: PriorityClass crew is already marked as default. Only one default can exist"
        )
    };
    let second = server.post(classes, &class("officers", 9, true)).await;
    assert_eq!(second.expect(403).status().2, message("officers"));
    let change = json!({"globalDefault": true});
    let second = server
        .patch(&format!("{classes}/guests"), MERGE, &change)
        .await;
    assert_eq!(second.expect(403).status().2, message("guests"));
    // The global default itself may be updated.
    let change = json!({"description": "all hands"});
    server
        .patch(&format!("{classes}/crew"), MERGE, &change)
        .await
        .expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_get_the_values_of_their_runtime_class_and_may_not_contradict_it() {
    let server = TestServer::start().await;
    let class = json!({
        "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "sealed"}, "handler": "sealed",
        "overhead": {"podFixed": {"memory": "1Gi", "cpu": "250m"}},
        "scheduling": {
            "nodeSelector": {"deck": "lower"},
            "tolerations": [{"key": "sealed", "operator": "Exists", "effect": "NoSchedule"}],
        },
    });
    server
        .post("/apis/node.k8s.io/v1/runtimeclasses", &class)
        .await
        .expect(201);
    let pods = format!("{NAMESPACE}/pods");
    let sealed = json!({"runtimeClassName": "sealed", "nodeSelector": {"side": "port"}});
    let created = server
        .post(&pods, &pod("a", sealed))
        .await
        .expect(201)
        .json();
    let spec = &created["spec"];
    assert_eq!(spec["overhead"], json!({"memory": "1Gi", "cpu": "250m"}));
    assert_eq!(
        spec["nodeSelector"],
        json!({"deck": "lower", "side": "port"})
    );
    let tolerated: Vec<&str> = spec["tolerations"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|toleration| toleration["key"].as_str())
        .collect();
    let usual = [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ];
    assert_eq!(tolerated, [usual[0], usual[1], "sealed"]);
    let same =
        json!({"runtimeClassName": "sealed", "overhead": {"memory": "1024Mi", "cpu": "0.25"}});
    server.post(&pods, &pod("same", same)).await.expect(201);
    for (spec, why) in [
        (
            json!({"runtimeClassName": "absent"}),
            "pod rejected: RuntimeClass \"absent\" not found",
        ),
        (
            json!({"runtimeClassName": "sealed", "overhead": {"cpu": "1"}}),
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (
            json!({"overhead": {"cpu": "1"}}),
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
        (
            json!({"runtimeClassName": "sealed", "nodeSelector": {"deck": "upper"}}),
            "conflict: runtimeClass.scheduling.nodeSelector[deck] = lower; pod.spec.nodeSelector[deck] = upper",
        ),
    ] {
        let refused = server.post(&pods, &pod("b", spec)).await.expect(403);
        assert_eq!(
            refused.status().2,
            format!("pods \"b\" is forbidden: {why}")
        );
    }
}

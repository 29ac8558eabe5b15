//! LimitRanges and quotas together, on a whole server.

use crate::support::{Requests as _, json};
use bareboat_testing::TestServer;

const NAMESPACE: &str = "/api/v1/namespaces/default";

#[tokio::test(flavor = "multi_thread")]
async fn limit_ranges_set_defaults_and_bounds_of_pods() {
    let server = TestServer::builder().start().await;
    let range = json!({
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "limits"},
        "spec": {"limits": [
            {"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "100m"}, "max": {"cpu": "1"}},
            {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}},
        ]},
    });
    let path = format!("{NAMESPACE}/limitranges");
    server.post(&path, &range).await.expect(201);
    let pod = |name: &str, resources| {
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]},
        })
    };
    let pods = format!("{NAMESPACE}/pods");
    let created = server
        .post(&pods, &pod("a", json!({})))
        .await
        .expect(201)
        .json();
    let container = &created["spec"]["containers"][0];
    let resources = json!({"limits": {"cpu": "500m"}, "requests": {"cpu": "100m"}});
    assert_eq!(container["resources"], resources);
    assert_eq!(created["status"]["qosClass"], "Burstable");
    assert_eq!(
        created["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
        "LimitRanger plugin set: cpu request for container c; cpu limit for container c"
    );
    let refused = server
        .post(&pods, &pod("b", json!({"limits": {"cpu": "2"}})))
        .await;
    let (code, reason, message) = refused.status();
    assert_eq!((code, reason.as_str()), (403, "Forbidden"));
    assert_eq!(
        message,
        "pods \"b\" is forbidden: maximum cpu usage per Container is 1, but limit is 2"
    );
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "big"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}},
    });
    let refused = server
        .post(&format!("{NAMESPACE}/persistentvolumeclaims"), &claim)
        .await;
    assert_eq!(
        refused.status().2,
        "persistentvolumeclaims \"big\" is forbidden: maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn defaults_of_a_limit_range_count_towards_the_quota() {
    let server = TestServer::builder().start().await;
    for (plural, object) in [
        (
            "limitranges",
            json!({
                "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "limits"},
                "spec": {"limits": [{"type": "Container", "default": {"cpu": "600m"}}]},
            }),
        ),
        (
            "resourcequotas",
            json!({
                "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"},
                "spec": {"hard": {"limits.cpu": "1"}},
            }),
        ),
    ] {
        server
            .post(&format!("{NAMESPACE}/{plural}"), &object)
            .await
            .expect(201);
    }
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p-"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    let pods = format!("{NAMESPACE}/pods");
    server.post(&pods, &pod).await.expect(201);
    let refused = server.post(&pods, &pod).await;
    let (code, _, message) = refused.status();
    assert_eq!(code, 403);
    let why = "exceeded quota: q, requested: limits.cpu=600m, used: limits.cpu=600m, limited: limits.cpu=1";
    assert!(message.ends_with(why), "{message}");
}

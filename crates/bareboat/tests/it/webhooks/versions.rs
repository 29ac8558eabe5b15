//! Webhooks for other versions of a kind than that of the request, and older reviews.

use super::hook::{Reply, TestHook, allow, configure, patch};
use crate::support::{MAPS, Requests, config_map, json};
use bareboat_testing::TestServer;

const SCALERS: &str = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";

#[tokio::test]
async fn equivalent_versions_are_converted_for_the_hook_and_back() {
    let server = TestServer::start().await;
    let hook = TestHook::start(|_, _| {
        patch(&json!([{"op": "replace", "path": "/spec/targetCPUUtilizationPercentage", "value": 55}]))
    })
    .await;
    let mut webhook = hook.webhook("/v1", "autoscaling", &["horizontalpodautoscalers"]);
    webhook["rules"][0]["apiVersions"] = json!(["v1"]);
    configure(&server, "Mutating", "all", &[webhook.clone()]).await;
    let scaler = |name: &str| {
        json!({"metadata": {"name": name}, "spec": {
            "maxReplicas": 3,
            "scaleTargetRef": {"kind": "Deployment", "name": "x", "apiVersion": "apps/v1"},
            "metrics": [{"type": "Resource", "resource": {
                "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}],
        }})
    };
    let made = server.post(SCALERS, &scaler("a")).await.expect(201).json();
    assert_eq!(made["apiVersion"], "autoscaling/v2");
    assert_eq!(
        made["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"],
        55
    );
    let request = hook.requests().remove(0);
    assert_eq!(request["kind"]["version"], "v1");
    assert_eq!(request["resource"]["version"], "v1");
    assert_eq!(request["requestKind"]["version"], "v2");
    assert_eq!(request["requestResource"]["version"], "v2");
    assert_eq!(request["object"]["apiVersion"], "autoscaling/v1");
    assert_eq!(
        request["object"]["spec"]["targetCPUUtilizationPercentage"],
        80
    );
    // With the policy Exact the same hook is not called.
    webhook["matchPolicy"] = json!("Exact");
    let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/all";
    server.delete(path).await.expect(200);
    configure(&server, "Mutating", "all", &[webhook]).await;
    server.post(SCALERS, &scaler("b")).await.expect(201);
    assert!(hook.requests().is_empty());
}

#[tokio::test]
async fn groups_with_the_same_objects_are_equivalent() {
    let server = TestServer::start().await;
    let hook = TestHook::start(|_, _| allow()).await;
    let webhook = hook.webhook("/events", "events.k8s.io", &["events"]);
    configure(&server, "Validating", "all", &[webhook]).await;
    let event = json!({
        "metadata": {"name": "e"}, "reason": "Because", "type": "Normal", "message": "hello",
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
    });
    server
        .post("/api/v1/namespaces/default/events", &event)
        .await
        .expect(201);
    let request = hook.requests().remove(0);
    assert_eq!(
        request["kind"],
        json!({"group": "events.k8s.io", "version": "v1", "kind": "Event"})
    );
    assert_eq!(
        request["requestKind"],
        json!({"group": "", "version": "v1", "kind": "Event"})
    );
    assert_eq!(request["object"]["note"], "hello");
    assert_eq!(request["object"]["regarding"]["name"], "p");
}

#[tokio::test]
async fn reviews_of_v1beta1_are_less_strict() {
    let server = TestServer::start().await;
    let hook = TestHook::start(|_, _| {
        // "[{\"op\":\"add\",\"path\":\"/data/x\",\"value\":\"y\"}]"
        let patch = "W3sib3AiOiJhZGQiLCJwYXRoIjoiL2RhdGEveCIsInZhbHVlIjoieSJ9XQ==";
        Reply::Review(json!({"uid": "wrong", "allowed": true, "patch": patch}))
    })
    .await;
    let mut webhook = hook.webhook("/old", "", &["configmaps"]);
    webhook["admissionReviewVersions"] = json!(["v1beta1", "v1"]);
    configure(&server, "Mutating", "all", &[webhook]).await;
    let made = server.post(MAPS, &config_map("a")).await.expect(201).json();
    assert_eq!(made["data"]["x"], "y");
    assert_eq!(
        hook.calls()[0].review["apiVersion"],
        "admission.k8s.io/v1beta1"
    );
}

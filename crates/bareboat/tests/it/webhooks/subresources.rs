//! Subresources, posted reviews and connections reach webhooks.

use super::hook::{TestHook, allow, configure, patch};
use crate::support::{MERGE, Requests, Value, json};
use bareboat_testing::TestServer;

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn deployment() -> Value {
    json!({"metadata": {"name": "d"}, "spec": {
        "replicas": 1, "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    }})
}

#[tokio::test]
async fn scales_are_sent_as_scales_and_their_replicas_can_be_changed() {
    let server = TestServer::start().await;
    server.post(DEPLOYMENTS, &deployment()).await.expect(201);
    let hook = TestHook::start(|path, request| match path {
        "/cap" if request["object"]["spec"]["replicas"].as_i64() > Some(5) => {
            patch(&json!([{"op": "replace", "path": "/spec/replicas", "value": 5}]))
        }
        _ => allow(),
    })
    .await;
    let cap = hook.webhook("/cap", "*", &["*/scale"]);
    configure(&server, "Mutating", "cap", &[cap]).await;
    configure(
        &server,
        "Validating",
        "see",
        &[hook.webhook("/see", "apps", &["deployments/scale"])],
    )
    .await;
    let path = format!("{DEPLOYMENTS}/d/scale");
    let scale = json!({"spec": {"replicas": 9}});
    let scaled = server.patch(&path, MERGE, &scale).await.expect(200).json();
    assert_eq!(scaled["spec"]["replicas"], 5);
    let stored = server
        .get(&format!("{DEPLOYMENTS}/d"))
        .await
        .expect(200)
        .json();
    assert_eq!(stored["spec"]["replicas"], 5);
    let requests = hook.requests();
    for request in &requests {
        assert_eq!(
            request["kind"],
            json!({"group": "autoscaling", "version": "v1", "kind": "Scale"})
        );
        assert_eq!(request["resource"]["resource"], "deployments");
        assert_eq!(request["subResource"], "scale");
        assert_eq!(request["oldObject"]["spec"]["replicas"], 1);
    }
    assert_eq!(requests[1]["object"]["spec"]["replicas"], 5);
}

#[tokio::test]
async fn a_status_is_reviewed_with_the_stored_object_beside_it() {
    let server = TestServer::start().await;
    server.post(DEPLOYMENTS, &deployment()).await.expect(201);
    let hook = TestHook::start(|_, _| allow()).await;
    let webhook = hook.webhook("/see", "apps", &["deployments/*"]);
    configure(&server, "Validating", "all", &[webhook]).await;
    let path = format!("{DEPLOYMENTS}/d/status");
    let status = json!({"spec": {"replicas": 7}, "status": {"replicas": 3}});
    server.patch(&path, MERGE, &status).await.expect(200);
    let request = hook.requests().remove(0);
    assert_eq!(request["subResource"], "status");
    assert_eq!(request["kind"]["kind"], "Deployment");
    assert_eq!(request["oldObject"]["spec"]["replicas"], 1);
    assert_eq!(
        request["object"]["spec"]["replicas"], 1,
        "only the status is written"
    );
    assert_eq!(request["object"]["status"]["replicas"], 3);
}

#[tokio::test]
async fn evictions_and_access_reviews_are_reviewed() {
    let server = TestServer::start().await;
    let hook = TestHook::start(|path, _| match path {
        "/evict" => super::hook::deny(
            &json!({"code": 429, "reason": "TooManyRequests", "message": "not now"}),
        ),
        _ => allow(),
    })
    .await;
    let evict = hook.webhook("/evict", "*", &["pods/eviction"]);
    let review = hook.webhook("/review", "authorization.k8s.io", &["subjectaccessreviews"]);
    configure(&server, "Validating", "all", &[evict, review]).await;
    let pods = "/api/v1/namespaces/default/pods";
    let pod =
        json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    server.post(pods, &pod).await.expect(201);
    let eviction =
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    let answer = server.post(&format!("{pods}/p/eviction"), &eviction).await;
    assert_eq!(answer.status().0, 429, "{}", answer.text());
    let request = hook.requests().remove(0);
    assert_eq!(request["operation"], "CREATE");
    assert_eq!(request["subResource"], "eviction");
    assert_eq!(
        request["kind"],
        json!({"group": "policy", "version": "v1", "kind": "Eviction"})
    );
    assert_eq!(
        request["resource"],
        json!({"group": "", "version": "v1", "resource": "pods"})
    );
    assert_eq!(request["name"], "p");
    let review =
        json!({"spec": {"user": "ann", "nonResourceAttributes": {"path": "/", "verb": "get"}}});
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    server.post(path, &review).await.expect(201);
    assert_eq!(hook.requests()[0]["object"]["spec"]["user"], "ann");
}

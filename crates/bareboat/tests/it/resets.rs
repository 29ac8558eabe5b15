//! Fields that a subresource does not change: writes neither change nor own them.

use crate::support::*;
use bareboat_testing::TestServer;

async fn apply(server: &TestServer, path: &str, body: &Value) -> Value {
    let path = format!("{path}?fieldManager=m");
    let answer = server.patch(&path, APPLY, body).await;
    assert!(matches!(answer.code, 200 | 201), "{}", answer.text());
    answer.json()
}

/// Returns the fields that a manager owns through a subresource.
fn fields(object: &Value, manager: &str, subresource: &str) -> Value {
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    let found = entries
        .iter()
        .find(|entry| entry["manager"] == manager && text(&entry["subresource"]) == subresource);
    found.map_or(Value::Null, |entry| entry["fieldsV1"].clone())
}

#[tokio::test]
async fn the_status_of_a_deployment_leaves_its_labels_alone() {
    let server = TestServer::builder().without_controllers().start().await;
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }},
        "status": {"replicas": 7},
    });
    let made = apply(&server, &format!("{path}/d"), &deployment).await;
    assert_eq!(fields(&made, "m", "").get("f:status"), None);
    let status = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "d", "labels": {"x": "y"}, "annotations": {"x": "y"}},
        "spec": {"replicas": 9},
        "status": {"replicas": 3},
    });
    let after = apply(&server, &format!("{path}/d/status"), &status).await;
    assert_eq!(after["metadata"].get("labels"), None);
    assert_eq!(after["metadata"]["annotations"], json!({"x": "y"}));
    assert_eq!(after["spec"]["replicas"], 1);
    assert_eq!(after["status"]["replicas"], 3);
    assert_eq!(
        fields(&after, "m", "status"),
        json!({"f:metadata": {"f:annotations": {"f:x": {}}}, "f:status": {"f:replicas": {}}})
    );
}

#[tokio::test]
async fn subresources_of_a_pod_change_nothing_else() {
    let server = TestServer::builder().without_controllers().start().await;
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    server.post(pods, &pod).await.expect(201);
    let more = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p", "labels": {"x": "y"}},
        "spec": {
            "hostname": "h",
            "ephemeralContainers": [{"name": "e", "image": "i"}],
        },
    });
    let after = apply(&server, &format!("{pods}/p/ephemeralcontainers"), &more).await;
    assert_eq!(after["spec"]["ephemeralContainers"][0]["name"], "e");
    assert_eq!(after["spec"].get("hostname"), None);
    let managed = fields(&after, "m", "ephemeralcontainers");
    assert_eq!(managed.as_object().unwrap().len(), 1, "{managed}");
    let spec = managed["f:spec"].as_object().unwrap();
    assert_eq!(spec.keys().collect::<Vec<_>>(), ["f:ephemeralContainers"]);
}

#[tokio::test]
async fn the_status_subresource_of_a_service_cidr_changes_only_the_status() {
    let server = TestServer::builder().without_controllers().start().await;
    let path = "/apis/networking.k8s.io/v1/servicecidrs/kubernetes/status";
    let patch = json!({"metadata": {"labels": {"x": "y"}}, "spec": {"cidrs": ["10.1.0.0/24"]}, "status": {"conditions": []}});
    let after = server.patch(path, MERGE, &patch).await.expect(200).json();
    assert_eq!(after["metadata"].get("labels"), None);
    assert_eq!(after["spec"]["cidrs"], json!(["10.0.0.0/24"]));
}

#[tokio::test]
async fn writes_to_the_status_of_an_api_service_keep_its_metadata() {
    let server = TestServer::builder().without_controllers().start().await;
    let services = "/apis/apiregistration.k8s.io/v1/apiservices";
    let service = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": "v1.example.com", "labels": {"a": "b"}},
        "spec": {"group": "example.com", "version": "v1", "groupPriorityMinimum": 7, "versionPriority": 7},
    });
    server.post(services, &service).await.expect(201);
    let path = format!("{services}/v1.example.com/status");
    let patch = json!({
        "metadata": {"labels": {"x": "y"}, "annotations": {"x": "y"}, "finalizers": ["example.com/x"]},
        "spec": {"versionPriority": 9},
    });
    let after = server.patch(&path, MERGE, &patch).await.expect(200).json();
    assert_eq!(after["metadata"]["labels"], json!({"a": "b"}));
    for member in ["annotations", "finalizers"] {
        assert_eq!(after["metadata"].get(member), None, "{member}");
    }
    assert_eq!(after["spec"]["versionPriority"], 7);
}

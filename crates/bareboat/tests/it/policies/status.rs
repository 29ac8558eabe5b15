//! The status of validating policies: type checks by a controller with its own user.

use super::*;

async fn checked(server: &TestServer, name: &str) -> Value {
    let path = format!("{ADMISSION}/validatingadmissionpolicies/{name}");
    soon(async {
        loop {
            let policy = server.get(&path).await.expect(200).json();
            let (generation, status) = (&policy["metadata"]["generation"], &policy["status"]);
            if status["observedGeneration"] == *generation {
                return policy;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    })
    .await
}

#[tokio::test]
async fn expressions_are_checked_against_types() {
    let server = TestServer::builder().default_roles().start().await;
    let spec = json!({
        "matchConstraints": rules("apps", "deployments", &["CREATE"]),
        "validations": [
            {"expression": "object.spec.replicas <= 5 && object.metadata.labels['a'] == 'b'"},
        ],
    });
    let spec = merged(
        spec,
        json!({"matchConstraints": {"resourceRules": [{
            "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"],
        }]}}),
    );
    validate(&server, "typed", spec, json!({})).await;
    let policy = checked(&server, "typed").await;
    assert_eq!(
        policy["status"],
        json!({"observedGeneration": 1, "typeChecking": {}})
    );
    let wrong = json!([{"op": "replace", "path": "/spec/validations/0/expression", "value": "object.spec.replicass > 1"}]);
    let path = format!("{ADMISSION}/validatingadmissionpolicies/typed");
    server.patch(&path, JSON_PATCH, &wrong).await.expect(200);
    let policy = checked(&server, "typed").await;
    assert_eq!(
        policy["status"]["typeChecking"]["expressionWarnings"],
        json!([{
            "fieldRef": "spec.validations[0].expression",
            "warning": "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'replicass'\n | object.spec.replicass > 1\n | ...........^\n",
        }])
    );
    let managers = policy["metadata"]["managedFields"].as_array().unwrap();
    let writes_status = |entry: &&Value| entry["subresource"] == "status";
    let status = managers.iter().find(writes_status).unwrap();
    assert_eq!(status["manager"], "validatingadmissionpolicy-status");
}

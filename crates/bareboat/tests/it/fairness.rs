//! Priority and fairness: default objects and conditions; `load` tests fairness under load.

mod load;
mod storm;

use crate::support::*;
use crate::vectors;
use bareboat_testing::TestServer;
use std::time::Duration;

const SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
const LEVELS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations";
const AUTO_UPDATE: &str = "apf.kubernetes.io/autoupdate-spec";

/// Returns a priority level with a number of shares.
fn level(name: &str, shares: u32, response: Value) -> Value {
    json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "PriorityLevelConfiguration",
        "metadata": {"name": name},
        "spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": shares, "limitResponse": response}},
    })
}

/// Returns a schema that assigns all requests of a user to a level.
fn schema(name: &str, level: &str, user: &str) -> Value {
    json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": {"name": name},
        "spec": {
            "matchingPrecedence": 50,
            "priorityLevelConfiguration": {"name": level},
            "distinguisherMethod": {"type": "ByUser"},
            "rules": [{
                "subjects": [{"kind": "User", "user": {"name": user}}],
                "resourceRules": [{
                    "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": true,
                }],
            }],
        },
    })
}

/// Waits until an object meets a condition.
async fn until(server: &TestServer, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let found = async {
        loop {
            let answer = server.get(path).await;
            if answer.code == 200 && wanted(&answer.json()) {
                return answer.json();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    soon(found).await
}

fn dangling(schema: &Value) -> (String, String) {
    let condition = &schema["status"]["conditions"][0];
    let text = |key: &str| condition[key].as_str().unwrap_or("").to_owned();
    (text("status"), text("reason"))
}

#[tokio::test]
async fn the_default_objects_are_those_of_kubernetes() {
    let Some(folder) = vectors::folder("flowcontrol") else {
        return;
    };
    let text = std::fs::read_to_string(folder.join("bootstrap.yaml")).unwrap();
    let server = TestServer::builder().default_flow_control().start().await;
    let mut count = 0;
    for document in text.split("---\n").filter(|document| !document.is_empty()) {
        let parsed = bareboat_wire::yaml::parse(document.as_bytes()).unwrap();
        let wanted: Value = serde_json::from_slice(&parsed.value.to_json()).unwrap();
        let collection = match wanted["kind"].as_str() {
            Some("FlowSchema") => SCHEMAS,
            _ => LEVELS,
        };
        let path = format!("{collection}/{}", name(&wanted));
        let found = server.get(&path).await.expect(200).json();
        assert_eq!(found["spec"], wanted["spec"], "{path}");
        assert_eq!(
            found["metadata"]["annotations"],
            wanted["metadata"]["annotations"]
        );
        if collection == SCHEMAS {
            assert_eq!(dangling(&found), ("False".to_owned(), "Found".to_owned()));
        }
        count += 1;
    }
    assert_eq!(count, 19);
    for collection in [SCHEMAS, LEVELS] {
        count -= server.get(collection).await.names().len();
    }
    assert_eq!(count, 0);
}

#[tokio::test]
async fn default_objects_are_repaired_unless_annotated_otherwise() {
    let mut server = TestServer::builder().default_flow_control().start().await;
    let shares = |shares: u32| json!({"spec": {"limited": {"nominalConcurrencyShares": shares}}});
    let has = |wanted: u64| {
        move |level: &Value| level["spec"]["limited"]["nominalConcurrencyShares"] == wanted
    };
    let path = |name: &str| format!("{LEVELS}/{name}");
    // Mandatory objects ignore the annotation.
    let mut patch = shares(77);
    patch["metadata"]["annotations"][AUTO_UPDATE] = json!("false");
    server
        .patch(&path("catch-all"), MERGE, &patch)
        .await
        .expect(200);
    let repaired = until(&server, &path("catch-all"), has(5)).await;
    assert_eq!(repaired["metadata"]["annotations"][AUTO_UPDATE], "true");
    // Suggested objects follow the annotation.
    server
        .patch(&path("system"), MERGE, &shares(77))
        .await
        .expect(200);
    until(&server, &path("system"), has(30)).await;
    server
        .patch(&path("node-high"), MERGE, &patch)
        .await
        .expect(200);
    server
        .send("DELETE", &path("workload-low"), &[], "")
        .await
        .expect(200);
    server
        .send("DELETE", &format!("{SCHEMAS}/catch-all"), &[], "")
        .await
        .expect(200);
    until(&server, &path("workload-low"), has(100)).await;
    until(&server, &format!("{SCHEMAS}/catch-all"), |found| {
        dangling(found).0 == "False"
    })
    .await;
    server.restart().await;
    until(&server, &path("node-high"), has(77)).await;
    // An unchanged object of another release is deleted.
    let mut old = level("old-default", 3, json!({"type": "Reject"}));
    old["metadata"]["annotations"][AUTO_UPDATE] = json!("true");
    server.post(LEVELS, &old).await.expect(201);
    while server.get(&path("old-default")).await.code != 404 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_start_without_differences_writes_nothing() {
    let mut server = TestServer::builder().default_flow_control().start().await;
    let versions = async |server: &TestServer| {
        let mut all = Vec::new();
        for collection in [SCHEMAS, LEVELS] {
            let list = server.get(collection).await.json();
            all.extend(list["items"].as_array().unwrap().iter().map(version));
        }
        all
    };
    let before = versions(&server).await;
    server.restart().await;
    assert_eq!(versions(&server).await, before);
}

#[tokio::test]
async fn a_schema_reports_whether_its_level_exists() {
    let server = TestServer::builder().default_flow_control().start().await;
    let path = format!("{SCHEMAS}/mine");
    server
        .post(SCHEMAS, &schema("mine", "missing", "ann"))
        .await
        .expect(201);
    let found = until(&server, &path, |found| dangling(found).0 == "True").await;
    assert_eq!(dangling(&found).1, "NotFound");
    assert_eq!(
        found["status"]["conditions"][0]["message"],
        "This FlowSchema references the PriorityLevelConfiguration object named \"missing\" but there is no such object"
    );
    let table = server
        .send("GET", &path, &[("accept", TABLE)], "")
        .await
        .json();
    let cells = table["rows"][0]["cells"].as_array().unwrap();
    assert_eq!(
        cells[..4],
        [json!("mine"), json!("missing"), json!(50), json!("ByUser")]
    );
    assert_eq!(cells[5], "True");
    let missing = level("missing", 5, json!({"type": "Reject"}));
    server.post(LEVELS, &missing).await.expect(201);
    until(&server, &path, |found| dangling(found).0 == "False").await;
    server
        .send("DELETE", &format!("{LEVELS}/missing"), &[], "")
        .await
        .expect(200);
    until(&server, &path, |found| dangling(found).0 == "True").await;
}

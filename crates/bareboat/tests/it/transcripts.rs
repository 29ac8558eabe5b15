//! Compares responses with those recorded from a kube-apiserver 1.36, field by field.
//!
//! Known differences and their reasons are a table in `docs/differences.md`. An unlisted difference fails the test, and
//! so does a listed one that no longer occurs.

use crate::compare::differences;
use crate::ledger::Ledger;
use crate::support::{Answer, Requests as _, Value, json, soon};
use crate::vectors;
use bareboat_testing::TestServer;
use std::collections::HashMap;

/// The address of the recorded server, which `/api` shows.
const HOST: &str = "127.0.0.1:16451";

async fn replay(file: &str) {
    let Some(folder) = vectors::folder("transcript") else {
        return;
    };
    let text = std::fs::read_to_string(folder.join(format!("{file}.jsonl"))).unwrap();
    let steps: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    // The recorded server counted from one, as SQLite does; nothing else wrote meanwhile.
    let builder = TestServer::builder().sqlite();
    let builder = match file {
        "bootstrap" => builder.default_roles().default_flow_control(),
        _ => builder.without_controllers(),
    };
    let server = builder.start().await;
    prepare(&server, file, &steps).await;
    let mut ledger = Ledger::read("docs/differences.md", file);
    let mut seen: HashMap<String, usize> = HashMap::new();
    for step in &steps {
        let name = step["name"].as_str().unwrap();
        let count = seen.entry(name.to_owned()).or_default();
        *count += 1;
        let name = match count {
            1 => name.to_owned(),
            n => format!("{name} #{n}"),
        };
        let found = run(&server, step).await;
        ledger.check(&name, found);
    }
    ledger.finish();
}

/// Repeats the preparations of the recording.
async fn prepare(server: &TestServer, file: &str, steps: &[Value]) {
    if file == "bootstrap" {
        until_registered(server, steps).await;
        return soon(until_aggregated(server)).await;
    }
    if file == "discovery" {
        return;
    }
    let namespace = json!({"metadata": {"name": "t"}});
    server
        .post("/api/v1/namespaces", &namespace)
        .await
        .expect(201);
    if file == "custom" {
        let mut definition = steps[0]["answer"]["body"].clone();
        definition["metadata"] = json!({"name": definition["metadata"]["name"]});
        definition.as_object_mut().unwrap().remove("status");
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let headers = [("user-agent", "transcript")];
        let body = definition.to_string();
        server.send("POST", path, &headers, body).await.expect(201);
    }
}

/// Waits until as many group versions are registered as in the recording.
async fn until_registered(server: &TestServer, steps: &[Value]) {
    let path = "/apis/apiregistration.k8s.io/v1/apiservices";
    let recorded = steps.iter().find(|step| step["request"]["path"] == path);
    let recorded = recorded.expect("it was recorded");
    let items = recorded["answer"]["body"]["items"].as_array().unwrap();
    for _ in 0..30_000 {
        if server.get(path).await.names().len() >= items.len() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("not every version of a group was registered");
}

/// Waits until aggregated roles have rules.
async fn until_aggregated(server: &TestServer) {
    for name in ["view", "edit", "admin"] {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}");
        while server.get(&path).await.json()["rules"].is_null() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }
}

async fn run(server: &TestServer, step: &Value) -> Vec<(String, String)> {
    let asked = &step["request"];
    let mut headers = vec![("host", HOST), ("user-agent", "transcript")];
    for (name, value) in asked["headers"].as_object().into_iter().flatten() {
        headers.push((name, value.as_str().unwrap()));
    }
    let body = match &asked["body"] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let (method, path) = (
        asked["method"].as_str().unwrap(),
        asked["path"].as_str().unwrap(),
    );
    let mut answer = server.send(method, path, &headers, body).await;
    if path.contains("/rbac.authorization.k8s.io/") {
        remove_own_roles(&mut answer);
    }
    differences(&step["answer"], &answer)
}

/// Removes roles of controllers that Kubernetes does not have from a list.
fn remove_own_roles(answer: &mut Answer) {
    let Ok(mut body) = serde_json::from_slice::<Value>(&answer.bytes) else {
        return;
    };
    if let Some(Value::Array(items)) = body.get_mut("items") {
        items.retain(|item| {
            let name = item["metadata"]["name"].as_str().unwrap_or("");
            !name.starts_with("system:controller:bareboat-")
        });
        answer.bytes = body.to_string().into();
    }
}

#[tokio::test]
async fn discovery_equals_the_recording() {
    replay("discovery").await;
}

#[tokio::test]
async fn built_in_kinds_equal_the_recording() {
    replay("builtins").await;
}

#[tokio::test]
async fn errors_equal_the_recording() {
    replay("errors").await;
}

#[tokio::test]
async fn patches_and_applies_equal_the_recording() {
    replay("writes").await;
}

#[tokio::test]
async fn a_custom_kind_equals_the_recording() {
    replay("custom").await;
}

#[tokio::test]
async fn initial_objects_equal_the_recording() {
    replay("bootstrap").await;
}

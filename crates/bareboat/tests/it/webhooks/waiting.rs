//! Requests that wait for webhooks: others do not wait with them, and what they hold in memory is limited.

use super::hook::{Reply, TestHook, allow, configure};
use crate::socket::{As, Connection};
use crate::support::*;
use bareboat_testing::TestServer;
use futures_util::future::join_all;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn definition(plural: &str, kind: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.waits.example.com")},
        "spec": {
            "group": "waits.example.com", "scope": "Cluster",
            "names": {"plural": plural, "singular": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    })
}

fn is_accepted(definition: &Value) -> bool {
    let conditions = definition["status"]["conditions"].as_array().unwrap();
    let mut accepted = conditions.iter().filter(|it| it["type"] == "NamesAccepted");
    accepted.any(|it| it["status"] == "True")
}

async fn until_called(hook: &TestHook, times: usize) {
    soon(async {
        while hook.calls().len() < times {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// A webhook for some resources that waits as long as it may.
fn patient(hook: &TestHook, path: &str, group: &str, resources: &[&str]) -> Value {
    let mut webhook = hook.webhook(path, group, resources);
    webhook["timeoutSeconds"] = json!(30);
    webhook
}

#[tokio::test]
async fn a_definition_does_not_wait_for_the_webhook_of_another() {
    let server = TestServer::start().await;
    let gate = Arc::new(Semaphore::new(0));
    let closed = gate.clone();
    let hook = TestHook::start(move |_, request| match text(&request["name"]) {
        "slows.waits.example.com" => Reply::After(closed.clone()),
        _ => allow(),
    })
    .await;
    for kind in ["Mutating", "Validating"] {
        let path = format!("/{}", kind.to_lowercase());
        let webhook = patient(
            &hook,
            &path,
            "apiextensions.k8s.io",
            &["customresourcedefinitions"],
        );
        configure(&server, kind, "all", &[webhook]).await;
    }
    let others = async {
        until_called(&hook, 1).await;
        let quick = server
            .post(DEFINITIONS, &definition("quicks", "Quick"))
            .await;
        assert!(is_accepted(&quick.expect(201).json()));
        let labels = json!({"metadata": {"labels": {"a": "b"}}});
        let path = format!("{DEFINITIONS}/quicks.waits.example.com");
        server.patch(&path, MERGE, &labels).await.expect(200);
        gate.close();
    };
    let slow = definition("slows", "Slow");
    let (slow, ()) = tokio::join!(server.post(DEFINITIONS, &slow), others);
    assert!(is_accepted(&slow.expect(201).json()));
    let resources = server.get("/apis/waits.example.com/v1").await.expect(200);
    let resources = resources.json()["resources"].as_array().unwrap().len();
    assert_eq!(resources, 2);
}

#[tokio::test]
async fn of_two_definitions_under_review_at_once_one_gets_the_name() {
    let server = TestServer::start().await;
    let gate = Arc::new(Semaphore::new(0));
    let closed = gate.clone();
    let hook = TestHook::start(move |_, _| Reply::After(closed.clone())).await;
    let resources = ["customresourcedefinitions"];
    let webhook = patient(&hook, "/all", "apiextensions.k8s.io", &resources);
    configure(&server, "Validating", "all", &[webhook]).await;
    let all: Vec<Value> = (0..8)
        .map(|at| definition(&format!("p{at}"), "Same"))
        .collect();
    let open = async {
        until_called(&hook, all.len()).await;
        gate.close();
    };
    let made = join_all(all.iter().map(|one| server.post(DEFINITIONS, one)));
    let (made, ()) = tokio::join!(made, open);
    let made: Vec<Value> = made.into_iter().map(|it| it.expect(201).json()).collect();
    assert_eq!(made.iter().filter(|it| is_accepted(it)).count(), 1);
    // An update of a loser takes nothing.
    let loser = made.iter().find(|it| !is_accepted(it)).unwrap();
    let path = format!("{DEFINITIONS}/{}", name(loser));
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    let loser = server.patch(&path, MERGE, &labels).await.expect(200);
    assert!(!is_accepted(&loser.json()));
}

/// How many patches are tried. There is memory for fewer.
const MANY: usize = 40;

#[tokio::test]
async fn small_patches_of_large_objects_are_limited_while_they_wait() {
    let server = TestServer::builder().listening().start().await;
    let mut things = definition("things", "Thing");
    let schema = &mut things["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
    server.post(DEFINITIONS, &things).await.expect(201);
    let path = "/apis/waits.example.com/v1/things";
    // Two bytes for each value, which takes many more in memory.
    let numbers = vec![0; 50_000];
    for at in 0..MANY {
        let thing = json!({"apiVersion": "waits.example.com/v1", "kind": "Thing",
            "metadata": {"name": format!("t{at}")}, "numbers": numbers});
        server.post(path, &thing).await.expect(201);
    }
    let gate = Arc::new(Semaphore::new(0));
    let closed = gate.clone();
    let hook = TestHook::start(move |_, _| Reply::After(closed.clone())).await;
    let webhook = patient(&hook, "/wait", "waits.example.com", &["things"]);
    configure(&server, "Validating", "all", &[webhook]).await;
    let patch = async |at: usize, label: &str| {
        let mut connection = Connection::http1(&server, As::Admin).await;
        let label = json!({"metadata": {"labels": {"a": label}}}).to_string();
        let headers = [("content-type", MERGE)];
        let path = format!("{path}/t{at}");
        connection.send("PATCH", &path, &headers, label).await.code
    };
    let mut waiting = FuturesUnordered::new();
    let refused = loop {
        let at = waiting.len();
        assert!(at < MANY, "nothing limits them");
        waiting.push(Box::pin(patch(at, "b")));
        tokio::select! {
            () = until_called(&hook, at + 1) => {}
            code = waiting.next() => break code,
        }
    };
    assert_eq!(refused, Some(429));
    let count = waiting.len();
    assert!(count >= 4, "only {count} may wait");
    gate.close();
    let codes: Vec<u16> = waiting.collect().await;
    assert_eq!(codes, vec![200; count]);
    // All of it was given back.
    for at in 0..MANY {
        assert_eq!(patch(at, "c").await, 200);
    }
}

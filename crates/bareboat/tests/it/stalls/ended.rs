//! Writes that end before their commit: nothing is stored, and reservations are released.

use super::{DEFINITIONS, TestServer, costly, costly_object};
use crate::socket::{As, Connection};
use crate::support::*;
use bareboat::api::Status;
use bareboat::api::admission::{Lookup, Review, Validator};
use bareboat::api::kind::BoxFuture;
use std::sync::Arc;
use tokio::sync::Notify;

/// A last validator that blocks writes of objects whose name begins with `slow`.
#[derive(Default)]
struct Gate {
    reached: Notify,
}

impl Validator for Gate {
    fn name(&self) -> &'static str {
        "Gate"
    }

    fn validate<'a>(
        &'a self,
        review: &'a mut Review<'_>,
        _: &'a dyn Lookup,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let slow = review
            .object
            .as_ref()
            .is_some_and(|object| object.name().starts_with("slow"));
        Box::pin(async move {
            if slow {
                self.reached.notify_one();
                std::future::pending::<()>().await;
            }
            Ok(())
        })
    }
}

/// Disconnects while the gate holds an object.
async fn hang_up(server: &TestServer, gate: &Gate, path: &str, object: &Value) {
    let mut posting = std::pin::pin!(server.post(path, object));
    tokio::select! {
        answer = &mut posting => panic!("{}", answer.text()),
        () = soon(gate.reached.notified()) => {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reservations_are_released_when_the_client_disconnects() {
    let server = TestServer::start().await;
    let gate = Arc::new(Gate::default());
    let validator: Arc<dyn Validator> = gate.clone();
    server.server().validate_with(&validator);
    let quotas = "/api/v1/namespaces/default/resourcequotas";
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"},
        "spec": {"hard": {"count/secrets": "1", "services.nodeports": "1"}},
    });
    server.post(quotas, &quota).await.expect(201);
    // The quota applies once its usage is in the status.
    loop {
        let quota = server.get(&format!("{quotas}/q")).await.json();
        if quota["status"]["hard"]["count/secrets"] == "1" {
            break;
        }
        tokio::task::yield_now().await;
    }

    let secrets = "/api/v1/namespaces/default/secrets";
    let secret =
        |name: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}});
    hang_up(&server, &gate, secrets, &secret("slow")).await;
    server.post(secrets, &secret("quick")).await.expect(201);
    server.post(secrets, &secret("another")).await.expect(403);
    server.get(&format!("{secrets}/slow")).await.expect(404);

    let services = "/api/v1/namespaces/default/services";
    let service = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30123}]},
        })
    };
    hang_up(&server, &gate, services, &service("slow")).await;
    server.post(services, &service("quick")).await.expect(201);
    server.get(&format!("{services}/slow")).await.expect(404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_under_review_keeps_no_name_and_nobody_waiting() {
    let server = TestServer::start().await;
    let gate = Arc::new(Gate::default());
    let validator: Arc<dyn Validator> = gate.clone();
    server.server().validate_with(&validator);
    let slow = costly("slow");
    let mut posting = std::pin::pin!(server.post(DEFINITIONS, &slow));
    tokio::select! {
        answer = &mut posting => panic!("{}", answer.text()),
        () = soon(gate.reached.notified()) => {}
    }
    // Names are given to definitions when they are stored.
    let other = soon(server.post(DEFINITIONS, &costly("things"))).await;
    let conditions = other.expect(201).json()["status"]["conditions"].clone();
    let accepted = conditions.as_array().unwrap().iter();
    let mut accepted = accepted.filter(|condition| condition["type"] == "NamesAccepted");
    assert_eq!(accepted.next().unwrap()["status"], "True");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_deadline_ends_a_write_that_is_not_committed() {
    let server = TestServer::builder().without_controllers().start().await;
    let gate = Arc::new(Gate::default());
    let validator: Arc<dyn Validator> = gate.clone();
    server.server().validate_with(&validator);
    let answer = server
        .post(&format!("{MAPS}?timeout=1s"), &config_map("slow"))
        .await;
    let (code, reason, _) = answer.status();
    assert_eq!((code, reason.as_str()), (504, "Timeout"));
    server.get(&format!("{MAPS}/slow")).await.expect(404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_deadline_ends_a_write_with_expensive_rules() {
    let server = TestServer::builder().without_controllers().start().await;
    let mut definition = costly("things");
    let numbers = "/spec/versions/0/schema/openAPIV3Schema/properties/numbers";
    let numbers = definition.pointer_mut(numbers).unwrap();
    let rule = numbers["x-kubernetes-validations"][0].clone();
    let rules: Vec<Value> = (0..5)
        .map(|number| {
            let mut rule = rule.clone();
            rule["message"] = json!(format!("rule {number}"));
            rule
        })
        .collect();
    numbers["x-kubernetes-validations"] = json!(rules);
    server.post(DEFINITIONS, &definition).await.expect(201);
    let path = "/apis/stalls.example.com/v1/namespaces/default/things";
    let object = costly_object("a");
    let short = format!("{path}?timeout=1ms");
    let answers = (0..20).map(|_| server.post(&short, &object));
    for answer in futures_util::future::join_all(answers).await {
        let (code, reason, _) = answer.status();
        assert_eq!((code, reason.as_str()), (504, "Timeout"));
    }
    server.get(&format!("{path}/a")).await.expect(404);
    server.post(path, &object).await.expect(201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_waiting_writes_leave_seats_to_small_ones() {
    const SEATS: usize = 4;
    let server = TestServer::builder()
        .with(|builder| builder.max_in_flight(SEATS, SEATS).without_flow_control())
        .without_controllers()
        .listening()
        .start()
        .await;
    let gate = Arc::new(Gate::default());
    let validator: Arc<dyn Validator> = gate.clone();
    server.server().validate_with(&validator);
    let large = |name: &str| {
        let mut object = config_map(name);
        object["data"]["a"] = json!("x".repeat(100 << 10));
        object.to_string()
    };
    let mut waiting = Vec::new();
    for number in 0..SEATS / 2 {
        let mut connection = Connection::http1(&server, As::Admin).await;
        let body = large(&format!("slow-{number}"));
        waiting.push(tokio::spawn(async move {
            connection.send("POST", MAPS, &[], body).await
        }));
        soon(gate.reached.notified()).await;
    }
    let mut connection = Connection::http1(&server, As::Admin).await;
    let refused = connection.send("POST", MAPS, &[], large("b")).await;
    assert_eq!(refused.expect(429).header("retry-after"), "1");
    let body = config_map("small").to_string();
    connection.send("POST", MAPS, &[], body).await.expect(201);
    // After they end there is room again.
    for one in waiting {
        one.abort();
    }
    loop {
        let answer = connection.send("POST", MAPS, &[], large("c")).await;
        match answer.code {
            429 => tokio::task::yield_now().await,
            _ => break drop(answer.expect(201)),
        }
    }
}
